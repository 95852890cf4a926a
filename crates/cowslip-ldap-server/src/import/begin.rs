//! The directory that an import begins with: schema, indexes, no entries of users.

use std::collections::BTreeMap;
use std::sync::Arc;

use cowslip_engine::{Draft, Root};
use cowslip_ldap::schema::Others;

use super::{ImportError, ImportOptions};
use crate::config::INDEX_DN;
use crate::entry::Csn;
use crate::host::numbers_of;
use crate::meta::ENTRIES;
use crate::model::Directory;
use crate::operations::prepare::{self, Given, Origin};
use crate::operations::write::{self, Circumstances};
use crate::operations::{Brought, ChangeKind, Plan, Refusal, SchemaPlan};
use crate::schema_entry;
use crate::service::{initial_root, meta_of};
use crate::tree::Tree;

/// A root without entries of users, with the schema and the indexes that the options ask for.
pub(super) fn root(options: &ImportOptions) -> Result<Root<Directory>, ImportError> {
    let mut root = initial_root(&options.service)?;
    for file in &options.schema {
        let difference = root.meta().schema.difference(file, Others::Keep);
        let plan = SchemaPlan::of(&difference.changes);
        step(&mut root, options, "the schema", |draft, now| {
            schema_entry::change(draft, &plan, now).map(drop)
        })?;
        root = rebuilt(&root, options)?;
    }
    for (name, forms) in &options.indexes {
        let forms = forms.iter().map(|form| form.name().as_bytes()).collect();
        let given = [
            Given { description: b"objectClass", values: vec![b"cowslipIndex"] },
            Given { description: b"indexForm", values: forms },
        ];
        let what = format!("the index of {name}");
        step(&mut root, options, &what, |draft, now| {
            let (kind, _) = prepare::attribute(name.as_bytes(), draft.meta())?;
            let name = draft.meta().schema.attribute_type(kind).name();
            let dn = format!("cn={name},{INDEX_DN}");
            let path = prepare::path(&prepare::name(dn.as_bytes())?, draft.meta())?;
            let plan = if draft.resolve(&path).is_ok() {
                let [_, forms] = &given;
                prepare::modify(dn.as_bytes(), &[(ChangeKind::Replace, forms.clone())], draft.meta())?
            } else {
                let (brought, origin) = (Brought::default(), Origin::Import);
                Plan::Add(prepare::add(dn.as_bytes(), &given, brought, origin, draft.meta())?)
            };
            write::run(draft, &plan, now)
        })?;
    }
    rebuilt(&root, options)
}

fn step(
    root: &mut Root<Directory>,
    options: &ImportOptions,
    what: &str,
    run: impl FnOnce(&mut Draft<'_, Directory>, &mut Circumstances<'_>) -> Result<(), Refusal>,
) -> Result<(), ImportError> {
    let (mut last_number, last_csn_us) = numbers_of(root);
    let now_us = crate::host::now_us().max(last_csn_us + 1);
    let mut now = Circumstances {
        who: &options.who,
        now_us: now_us / 1_000_000 * 1_000_000,
        csn: Csn::new(now_us, options.service.host.server),
        last_number: &mut last_number,
        changes_max: options.service.host.changes_max,
    };
    let mut draft = Draft::new(root);
    run(&mut draft, &mut now).map_err(|refusal| ImportError::Refused { what: what.to_owned(), refusal })?;
    let changes = draft.into_changes();
    root.apply(&changes);
    Ok(())
}

/// The same entries under the meta that they give now, numbered from 1 on without a gap.
fn rebuilt(root: &Root<Directory>, options: &ImportOptions) -> Result<Root<Directory>, ImportError> {
    let entries: BTreeMap<_, _> =
        root.scan(ENTRIES).map(|(number, entry)| (number, Arc::clone(entry))).collect();
    let meta = meta_of(&entries, &options.service)?;
    let records = entries.into_iter().map(|(number, entry)| (ENTRIES, number, entry));
    Root::load(Arc::new(meta), 0, records).map_err(|conflict| ImportError::Conflict(conflict.to_string()))
}
