//! Reads what follows `changetype`.

use std::io::BufRead;

use super::{LdifBody, LdifError, LdifErrorKind, LdifModification, LdifOperation, LdifReader};
use crate::entry::Attribute;

impl LdifOperation {
    /// All of them.
    pub(super) const ALL: [LdifOperation; 4] =
        [LdifOperation::Add, LdifOperation::Delete, LdifOperation::Replace, LdifOperation::Increment];

    /// The word that stands before the colon.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            LdifOperation::Add => "add",
            LdifOperation::Delete => "delete",
            LdifOperation::Replace => "replace",
            LdifOperation::Increment => "increment",
        }
    }
}

impl<R: BufRead> LdifReader<R> {
    /// Reads a change from its `changetype` line on.
    pub(super) fn change(&mut self) -> Result<LdifBody, LdifError> {
        let kind = self.text_value()?.trim_ascii_end().to_ascii_lowercase();
        match kind.as_str() {
            "add" => {
                self.advance()?;
                Ok(LdifBody::Add(self.attributes()?))
            }
            "delete" => {
                self.advance()?;
                Ok(LdifBody::Delete)
            }
            "modify" => {
                self.advance()?;
                self.modifications()
            }
            "modrdn" | "moddn" => {
                self.advance()?;
                self.rename()
            }
            _ => self.fail(LdifErrorKind::ChangeType { found: kind }),
        }
    }

    fn modifications(&mut self) -> Result<LdifBody, LdifError> {
        let mut modifications = Vec::new();
        while self.is_at_text() {
            self.count_value()?;
            let operation = LdifOperation::ALL.into_iter().find(|operation| self.is_named(operation.name()));
            let Some(operation) = operation else {
                return self.fail(LdifErrorKind::Expected {
                    expected: "add:, delete:, replace: or increment: with an attribute",
                });
            };
            let description = self.description_value()?;
            self.advance()?;
            let mut attribute = Attribute { description, values: Vec::new() };
            while self.is_at_text() && !self.is_end_of_step() {
                self.count_value()?;
                attribute.values.push(self.value_of(&attribute.description)?);
                self.advance()?;
            }
            if self.is_at_text() {
                self.advance()?;
            }
            modifications.push(LdifModification { operation, attribute });
        }
        Ok(LdifBody::Modify(modifications))
    }

    fn is_end_of_step(&self) -> bool {
        self.current().trim_ascii_end() == b"-"
    }

    /// The line's value, which must be one of this attribute.
    fn value_of(&self, description: &str) -> Result<Vec<u8>, LdifError> {
        let (name, _) = self.parts()?;
        if name.eq_ignore_ascii_case(description.as_bytes()) {
            return self.value();
        }
        let found = String::from_utf8_lossy(name).into_owned();
        self.fail(LdifErrorKind::OtherAttribute { expected: description.to_owned(), found })
    }

    fn rename(&mut self) -> Result<LdifBody, LdifError> {
        let new_rdn = self.named_value("newrdn", "a line with newrdn:")?;
        let deletes_old_rdn = match self.is_named("deleteoldrdn").then(|| self.text_value()).transpose()? {
            Some(flag) if flag.trim_ascii_end() == "0" => false,
            Some(flag) if flag.trim_ascii_end() == "1" => true,
            _ => return self.fail(LdifErrorKind::Expected { expected: "deleteoldrdn: 0 or 1" }),
        };
        self.advance()?;
        let has_superior = self.is_named("newsuperior");
        let new_superior = match has_superior {
            true => Some(self.named_value("newsuperior", "a line with newsuperior:")?),
            false => None,
        };
        Ok(LdifBody::Rename { new_rdn, deletes_old_rdn, new_superior })
    }

    /// Reads a line that must be there and goes to the next.
    fn named_value(&mut self, name: &str, expected: &'static str) -> Result<String, LdifError> {
        if !self.is_named(name) {
            return self.fail(LdifErrorKind::Expected { expected });
        }
        let value = self.text_value()?;
        self.advance()?;
        Ok(value)
    }
}
