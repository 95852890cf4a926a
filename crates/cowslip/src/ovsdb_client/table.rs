//! Tables of values, printed in one of the formats of the command line.
//!
//! Byte for byte what the reference tool prints, because scripts cut it apart.

use super::clock::timestamp;
use super::json::{Value, object, string, strings, text};
use clap::ValueEnum;
use cowslip_ovsdb::atom::{Atom, parse_uuid};
use cowslip_ovsdb::datum::Datum;
use cowslip_ovsdb::json::Json;
use cowslip_ovsdb::types::ColumnType;

/// How tables are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Columns aligned with spaces.
    Table,
    /// One line per column, rows separated by an empty line.
    List,
    /// HTML tables in which UUIDs are links.
    Html,
    /// Comma-separated values (RFC 4180).
    Csv,
    /// One JSON object per table.
    Json,
}

/// How values are written inside tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CellFormat {
    /// Sets in brackets, maps in braces, strings quoted where needed.
    String,
    /// The same without any punctuation.
    Bare,
    /// As on the wire.
    Json,
}

/// The choices of the command line that concern output.
#[derive(Clone, Debug)]
pub(crate) struct Style {
    /// The layout.
    pub(crate) format: Format,
    /// The form of values.
    pub(crate) cells: CellFormat,
    /// Whether column names are printed.
    pub(crate) headings: bool,
    /// Whether JSON is spread over lines.
    pub(crate) pretty: bool,
    /// The most bytes of a column of a text table; no limit if zero.
    pub(crate) max_column_width: usize,
}

/// One cell.
#[derive(Clone, Debug)]
pub(crate) enum Cell {
    /// Nothing.
    Empty,
    /// Text that is printed as it is.
    Text(String),
    /// A value that came as JSON; of the column's type if it has one.
    Json(Value),
    /// A value of the column's type.
    Datum(Datum),
}

/// A column of a table.
#[derive(Clone, Debug)]
pub(crate) struct Heading {
    /// The name.
    pub(crate) name: String,
    /// The type of its values, where they are OVSDB data.
    pub(crate) ty: Option<ColumnType>,
}

/// A table to print.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    /// The line above it.
    pub(crate) caption: Option<String>,
    /// Whether the time is printed with it.
    pub(crate) timestamp: bool,
    /// The columns.
    pub(crate) headings: Vec<Heading>,
    /// The rows, each with one cell per column.
    pub(crate) rows: Vec<Vec<Cell>>,
}

impl Table {
    /// An empty table.
    pub(crate) fn new(caption: Option<String>) -> Self {
        Table { caption, ..Table::default() }
    }

    /// Adds a column.
    pub(crate) fn column(&mut self, name: &str, ty: Option<ColumnType>) {
        self.headings.push(Heading { name: name.to_owned(), ty });
    }

    /// Appends the table to `out`; `first` tells whether nothing was printed before.
    pub(crate) fn print(&self, style: &Style, first: bool, out: &mut String) {
        match style.format {
            Format::Json => return self.print_json(style, out),
            Format::Table | Format::List | Format::Csv if !first => out.push('\n'),
            _ => {}
        }
        if self.timestamp {
            line(out, &timestamp());
        }
        let cells = self.cell_texts(style);
        match (style.format, &self.caption) {
            (Format::Html, _) => return self.print_html(style, &cells, out),
            (_, Some(caption)) => line(out, caption),
            _ => {}
        }
        match style.format {
            Format::List => self.print_list(style, &cells, out),
            Format::Csv => self.print_csv(style, &cells, out),
            _ => self.print_table(style, &cells, out),
        }
    }

    fn cell_texts(&self, style: &Style) -> Vec<Vec<String>> {
        let row = |row: &Vec<Cell>| {
            row.iter()
                .zip(&self.headings)
                .map(|(cell, heading)| cell.text(heading.ty.as_ref(), style.cells))
                .collect()
        };
        self.rows.iter().map(row).collect()
    }

    fn print_table(&self, style: &Style, cells: &[Vec<String>], out: &mut String) {
        let mut widths = Vec::with_capacity(self.headings.len());
        for (x, heading) in self.headings.iter().enumerate() {
            // Bytes, not characters, as the reference tool counts.
            let content = cells.iter().map(|row| row[x].len()).max().unwrap_or(0);
            let limit = if style.max_column_width == 0 { usize::MAX } else { style.max_column_width };
            // A heading is never cut: without it nobody knows what the column is.
            let heading = if style.headings { heading.name.len() } else { 0 };
            widths.push(content.min(limit).max(heading));
        }
        let print = |out: &mut String, texts: &mut dyn Iterator<Item = &str>| {
            let start = out.len();
            for (x, (text, width)) in texts.zip(&widths).enumerate() {
                if x > 0 {
                    out.push(' ');
                }
                pad(out, text, *width);
            }
            out.truncate(start + out[start..].trim_end_matches(' ').len());
            out.push('\n');
        };
        if style.headings {
            print(out, &mut self.headings.iter().map(|h| h.name.as_str()));
            let rules: Vec<String> = widths.iter().map(|w| "-".repeat(*w)).collect();
            print(out, &mut rules.iter().map(String::as_str));
        }
        for row in cells {
            print(out, &mut row.iter().map(String::as_str));
        }
    }

    fn print_list(&self, style: &Style, cells: &[Vec<String>], out: &mut String) {
        for (y, row) in cells.iter().enumerate() {
            if y > 0 {
                out.push('\n');
            }
            for (text, heading) in row.iter().zip(&self.headings) {
                if style.headings {
                    out.push_str(&format!("{:<20}: ", heading.name));
                }
                line(out, text);
            }
        }
    }

    fn print_csv(&self, style: &Style, cells: &[Vec<String>], out: &mut String) {
        let print = |out: &mut String, texts: &mut dyn Iterator<Item = &str>| {
            let texts: Vec<String> = texts.map(csv_field).collect();
            line(out, &texts.join(","));
        };
        if style.headings {
            print(out, &mut self.headings.iter().map(|h| h.name.as_str()));
        }
        for row in cells {
            print(out, &mut row.iter().map(String::as_str));
        }
    }

    fn print_html(&self, style: &Style, cells: &[Vec<String>], out: &mut String) {
        line(out, "<table border=1>");
        if let Some(caption) = &self.caption {
            html_cell(out, "caption", caption);
        }
        if style.headings {
            line(out, "  <tr>");
            for heading in &self.headings {
                html_cell(out, "th", &heading.name);
            }
            line(out, "  </tr>");
        }
        for row in cells {
            line(out, "  <tr>");
            for (text, heading) in row.iter().zip(&self.headings) {
                if heading.name == "_uuid" {
                    let short: String = text.chars().take(UUID_SHOWN).collect();
                    line(out, &format!("    <td><a name=\"{}\">{}</a></td>", html(text), html(&short)));
                } else {
                    html_cell(out, "td", text);
                }
            }
            line(out, "  </tr>");
        }
        line(out, "</table>");
    }

    fn print_json(&self, style: &Style, out: &mut String) {
        let rows = self.rows.iter().map(|row| {
            let cells = row.iter().zip(&self.headings);
            Json::Array(cells.map(|(cell, heading)| cell.json(heading.ty.as_ref())).collect())
        });
        let mut members = vec![
            ("headings", strings(self.headings.iter().map(|h| h.name.as_str()))),
            ("data", Json::Array(rows.collect())),
        ];
        if let Some(caption) = &self.caption {
            members.push(("caption", string(caption)));
        }
        if self.timestamp {
            members.push(("time", string(&timestamp())));
        }
        line(out, &text(&object(members), style.pretty));
    }
}

/// How much of a UUID an HTML table shows.
const UUID_SHOWN: usize = 8;
/// The length of a UUID's text.
const UUID_LENGTH: usize = 36;

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

/// Appends `text`, cut or filled up to `width` bytes; the cut leaves no half character.
fn pad(out: &mut String, text: &str, width: usize) {
    let cut = (0..=width.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    out.push_str(&text[..cut]);
    out.extend(std::iter::repeat_n(' ', width - cut));
}

fn csv_field(text: &str) -> String {
    if text.contains(['\n', '"', ',']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            _ => out.push(c),
        }
    }
    out
}

/// A cell in which every UUID is a link to the row of that name.
fn html_cell(out: &mut String, element: &str, content: &str) {
    out.push_str(&format!("    <{element}>"));
    let mut rest = content;
    while let Some(first) = rest.chars().next() {
        match rest.get(..UUID_LENGTH).filter(|uuid| parse_uuid(uuid).is_some()) {
            Some(uuid) => {
                out.push_str(&format!("<a href=\"#{uuid}\">{}</a>", &uuid[..UUID_SHOWN]));
                rest = &rest[UUID_LENGTH..];
            }
            None => {
                let (one, after) = rest.split_at(first.len_utf8());
                out.push_str(&html(one));
                rest = after;
            }
        }
    }
    line(out, &format!("</{element}>"));
}

impl Cell {
    fn text(&self, ty: Option<&ColumnType>, format: CellFormat) -> String {
        match (self, ty) {
            (Cell::Empty, _) => String::new(),
            (Cell::Text(text), _) => text.clone(),
            (Cell::Json(json), Some(ty)) if format != CellFormat::Json => {
                match Datum::from_json(ty, json, None) {
                    Ok(datum) => datum_text(&datum, ty, format),
                    // A difference of an optional value, for one, is no value of the column.
                    Err(_) => text(json, false),
                }
            }
            (Cell::Json(json), _) => text(json, false),
            (Cell::Datum(datum), Some(ty)) => datum_text(datum, ty, format),
            (Cell::Datum(datum), None) => wire_text(datum, false),
        }
    }

    fn json(&self, ty: Option<&ColumnType>) -> Value {
        match self {
            Cell::Empty => Json::Null,
            Cell::Text(text) => string(text),
            Cell::Json(json) => json.clone(),
            Cell::Datum(datum) => datum_json(datum, ty.is_some_and(ColumnType::is_map)),
        }
    }
}

fn wire_text(datum: &Datum, is_map: bool) -> String {
    let mut out = String::new();
    datum.write(&mut out, is_map);
    out
}

/// A value as JSON.
pub(crate) fn datum_json(datum: &Datum, is_map: bool) -> Value {
    // What `Datum::write` gives is JSON that the parser takes.
    Json::parse(wire_text(datum, is_map).as_bytes()).map_or(Json::Null, Json::into_owned)
}

fn datum_text(datum: &Datum, ty: &ColumnType, format: CellFormat) -> String {
    if format == CellFormat::Json {
        return wire_text(datum, ty.is_map());
    }
    let bare = format == CellFormat::Bare;
    let atom = |atom: &Atom| match atom {
        Atom::String(text) if bare => text.to_string(),
        _ => atom.to_string(),
    };
    let members = datum.members().map(|(key, value)| match value {
        None => atom(key),
        Some(value) => format!("{}={}", atom(key), atom(value)),
    });
    let members: Vec<String> = members.collect();
    match (bare, ty.max > 1 || datum.is_empty()) {
        (true, _) => members.join(" "),
        (false, false) => members.join(", "),
        (false, true) if ty.is_map() => format!("{{{}}}", members.join(", ")),
        (false, true) => format!("[{}]", members.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cowslip_ovsdb::atom::AtomicType;

    fn sample() -> Table {
        let mut table = Table::new(Some("T table".to_owned()));
        let mut set = ColumnType::scalar(AtomicType::String);
        (set.min, set.max) = (0, 9);
        table.column("_uuid", Some(ColumnType::scalar(AtomicType::Uuid)));
        table.column("names", Some(set));
        let uuid = parse_uuid("11111111-2222-3333-4444-555555555555").unwrap();
        let names = Datum::from_atoms(vec![Atom::string("a"), Atom::string("é<,")]);
        table.rows.push(vec![Cell::Datum(Datum::One(Atom::Uuid(uuid))), Cell::Datum(names)]);
        table.rows.push(vec![Cell::Datum(Datum::One(Atom::Uuid(uuid))), Cell::Datum(Datum::EMPTY)]);
        table
    }

    fn printed(format: Format, cells: CellFormat, headings: bool) -> String {
        let mut out = String::new();
        let style = Style { format, cells, headings, pretty: false, max_column_width: 0 };
        sample().print(&style, true, &mut out);
        out
    }

    #[test]
    fn layouts() {
        assert_eq!(
            printed(Format::Table, CellFormat::String, true),
            "T table\n_uuid                                names\n------------------------------------ -----------\n\
             11111111-2222-3333-4444-555555555555 [a, \"é<,\"]\n11111111-2222-3333-4444-555555555555 []\n"
        );
        assert_eq!(
            printed(Format::List, CellFormat::Bare, false),
            "T table\n11111111-2222-3333-4444-555555555555\na é<,\n\n11111111-2222-3333-4444-555555555555\n\n"
        );
        assert_eq!(
            printed(Format::Csv, CellFormat::String, true).lines().nth(2).unwrap(),
            "11111111-2222-3333-4444-555555555555,\"[a, \"\"é<,\"\"]\""
        );
        assert!(printed(Format::Html, CellFormat::Bare, true).contains("<td>a é&lt;,</td>"));
        assert!(
            printed(Format::Json, CellFormat::Bare, true)
                .starts_with(r#"{"caption":"T table","data":[[["uuid","11111111-"#)
        );
    }
}
