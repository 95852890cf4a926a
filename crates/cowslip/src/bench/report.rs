//! Tables in Markdown.

use std::time::Duration;

/// A table whose columns line up, so that it reads well unrendered too.
pub(crate) fn table(headings: &[&str], rows: &[Vec<String>]) -> String {
    let width = |x: usize| {
        rows.iter().map(|row| row[x].chars().count()).chain([headings[x].len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..headings.len()).map(width).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let cells: Vec<String> = cells.zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let rules: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
    let mut out = line(&mut headings.iter().copied());
    out.push_str(&line(&mut rules.iter().map(String::as_str)));
    for row in rows {
        out.push_str(&line(&mut row.iter().map(String::as_str)));
    }
    out
}

/// A duration in milliseconds.
pub(crate) fn milliseconds(time: Duration) -> String {
    format!("{:.2}", time.as_secs_f64() * 1e3)
}

/// A number, or a dash where it is not known.
pub(crate) fn known(value: Option<f64>, digits: usize) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.digits$}"))
}

/// How many times `base` a value is.
pub(crate) fn ratio(value: Option<f64>, base: Option<f64>) -> String {
    match (value, base) {
        (Some(value), Some(base)) if base > 0.0 => format!("{:.2} x", value / base),
        _ => "-".to_owned(),
    }
}

/// The value below which `share` of the sorted values lie.
pub(crate) fn quantile(sorted: &[Duration], share: f64) -> Duration {
    let at = (sorted.len() as f64 * share) as usize;
    sorted.get(at.min(sorted.len().saturating_sub(1))).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let rows = [vec!["update".to_owned(), "1".to_owned()]];
        assert_eq!(
            table(&["op", "ops/s"], &rows),
            "| op     | ops/s |\n| ------ | ----- |\n| update | 1     |\n"
        );
        assert_eq!(
            quantile(&[Duration::from_millis(1), Duration::from_millis(3)], 0.99),
            Duration::from_millis(3)
        );
        assert_eq!(ratio(Some(1.0), Some(4.0)), "0.25 x");
    }
}
