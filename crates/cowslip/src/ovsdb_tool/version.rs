//! Schema versions and how they compare.

use std::cmp::Ordering;

use cowslip_ovsdb::schema::is_version;

use super::ToolError;

/// A relation between two versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    Less,
    LessOrEqual,
    Equal,
    GreaterOrEqual,
    Greater,
    NotEqual,
}

impl Relation {
    pub(super) fn parse(text: &str) -> Result<Self, ToolError> {
        match text {
            "<" => Ok(Self::Less),
            "<=" => Ok(Self::LessOrEqual),
            "==" => Ok(Self::Equal),
            ">=" => Ok(Self::GreaterOrEqual),
            ">" => Ok(Self::Greater),
            "!=" => Ok(Self::NotEqual),
            _ => Err(ToolError::Argument { text: text.to_owned(), expected: "a relational operator" }),
        }
    }

    pub(super) fn holds(self, a: &str, b: &str) -> Result<bool, ToolError> {
        let order = compare(&version(a)?, &version(b)?);
        Ok(match self {
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Equal => order.is_eq(),
            Self::GreaterOrEqual => order.is_ge(),
            Self::Greater => order.is_gt(),
            Self::NotEqual => order.is_ne(),
        })
    }
}

fn version(text: &str) -> Result<Vec<&str>, ToolError> {
    if !is_version(text) {
        let expected = "an OVSDB version number in format x.y.z";
        return Err(ToolError::Argument { text: text.to_owned(), expected });
    }
    Ok(text.split('.').collect())
}

/// Numbers without superfluous zeros compare by their lengths, then digit by digit, whatever their size.
fn compare(a: &[&str], b: &[&str]) -> Ordering {
    let part = |(a, b): (&&str, &&str)| a.len().cmp(&b.len()).then_with(|| a.cmp(b));
    a.iter().zip(b).map(part).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_number() {
        for (a, op, b, want) in [
            ("1.2.3", "<", "1.10.0", true),
            ("1.2.3", ">", "1.10.0", false),
            ("1.2.3", "==", "1.2.3", true),
            ("1.2.3", "!=", "1.2.3", false),
            ("1.2.3", ">=", "1.2.3", true),
            ("2.0.0", "<=", "1.99999999999999999999.0", false),
        ] {
            let relation = Relation::parse(op).expect("it is a relation");
            assert_eq!(relation.holds(a, b).expect("they are versions"), want, "{a} {op} {b}");
        }
        assert!(Relation::parse("=").is_err());
        assert!(Relation::Less.holds("1.2", "1.2.3").is_err());
    }
}
