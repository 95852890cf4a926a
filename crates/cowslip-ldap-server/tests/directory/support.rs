//! A directory with the entries that the cases are about, and short ways to change and read it.

use std::path::Path;
use std::sync::Arc;

use cowslip_engine::Root;
use cowslip_engine::storage::FileSystem;
use cowslip_ldap::result::ResultCode;
use cowslip_ldap_server::entry::{StoredEntry, Value};
use cowslip_ldap_server::host::{Answer, Job, Progress, Request, WriteJob};
use cowslip_ldap_server::meta::{ENTRIES, Meta};
use cowslip_ldap_server::model::Directory as Model;
use cowslip_ldap_server::operations::prepare::{self, Given, Origin};
use cowslip_ldap_server::operations::{Brought, ChangeKind, Plan, Refusal};
use cowslip_ldap_server::service::{Service, ServiceOptions};
use cowslip_ldap_server::tree::Tree;

pub(crate) struct Directory {
    pub(crate) service: Service,
}

/// Attributes as `name: value` lines.
fn given(text: &str) -> Vec<Given<'_>> {
    let mut given: Vec<Given<'_>> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':').expect("name: value");
        let (name, value) = (name.as_bytes(), value.trim().as_bytes());
        let values = if value.is_empty() { Vec::new() } else { vec![value] };
        match given.iter_mut().find(|there| there.description == name) {
            Some(there) => there.values.extend(values),
            None => given.push(Given { description: name, values }),
        }
    }
    given
}

fn kind(word: &str) -> ChangeKind {
    match word {
        "add" => ChangeKind::Add,
        "delete" => ChangeKind::Delete,
        "replace" => ChangeKind::Replace,
        _ => ChangeKind::Increment,
    }
}

pub(crate) fn plan_add(dn: &str, attributes: &str, meta: &Meta) -> Result<Plan, Refusal> {
    let given = given(attributes);
    prepare::add(dn.as_bytes(), &given, Brought::default(), Origin::Client, meta).map(Plan::Add)
}

pub(crate) fn plan_delete(dn: &str, meta: &Meta) -> Result<Plan, Refusal> {
    Ok(Plan::Delete(prepare::path(&prepare::name(dn.as_bytes())?, meta)?))
}

/// Changes as lines: `add`, `delete`, `replace` or `increment`, then `name: value` for each value of one attribute,
/// changes divided by a line with `-`.
pub(crate) fn plan_modify(dn: &str, changes: &str, meta: &Meta) -> Result<Plan, Refusal> {
    let parts = changes.split("\n-\n").map(|part| part.trim().split_once('\n').expect("a kind, then values"));
    let changes: Vec<_> = parts
        .flat_map(|(word, values)| given(values).into_iter().map(move |one| (kind(word.trim()), one)))
        .collect();
    prepare::modify(dn.as_bytes(), &changes, meta)
}

pub(crate) fn plan_rename(
    dn: &str,
    rdn: &str,
    deletes_old: bool,
    superior: Option<&str>,
    meta: &Meta,
) -> Result<Plan, Refusal> {
    prepare::rename(dn.as_bytes(), rdn.as_bytes(), deletes_old, superior.map(str::as_bytes), meta)
        .map(Plan::Rename)
}

impl Directory {
    /// A directory in memory with the top of the tree and two containers.
    pub(crate) fn new() -> Self {
        let directory = Self {
            service: Service::in_memory(&ServiceOptions::new(["dc=example,dc=com"])).expect("a directory"),
        };
        directory.fill();
        directory
    }

    /// The same in a folder.
    pub(crate) fn create(folder: &Path) -> Self {
        Service::create(&FileSystem::new(), folder, &ServiceOptions::new(["dc=example,dc=com"]))
            .expect("a folder");
        let directory = Self::open(folder);
        directory.fill();
        directory
    }

    pub(crate) fn open(folder: &Path) -> Self {
        let options = ServiceOptions::new(["dc=example,dc=com"]);
        let (service, _) = Service::open(Arc::new(FileSystem::new()), folder, &options).expect("a directory");
        Self { service }
    }

    pub(crate) fn fill(&self) {
        self.add("dc=example,dc=com", "objectClass: domain").expect("the top");
        self.add("ou=People,dc=example,dc=com", "objectClass: organizationalUnit").expect("a container");
        self.add("ou=Groups,dc=example,dc=com", "objectClass: organizationalUnit").expect("a container");
        self.person("amy", "").expect("a person");
    }

    pub(crate) fn person(&self, uid: &str, more: &str) -> Result<(), Refusal> {
        let attributes = format!("objectClass: inetOrgPerson\ncn: {uid} Doe\nsn: Doe\n{more}");
        self.add(&format!("uid={uid},ou=People,dc=example,dc=com"), &attributes)
    }

    pub(crate) fn add(&self, dn: &str, attributes: &str) -> Result<(), Refusal> {
        self.write(|meta| plan_add(dn, attributes, meta))
    }

    pub(crate) fn delete(&self, dn: &str) -> Result<(), Refusal> {
        self.write(|meta| plan_delete(dn, meta))
    }

    /// Changes as [`plan_modify`] reads them.
    pub(crate) fn modify(&self, dn: &str, changes: &str) -> Result<(), Refusal> {
        self.write(|meta| plan_modify(dn, changes, meta))
    }

    pub(crate) fn rename(
        &self,
        dn: &str,
        rdn: &str,
        deletes_old: bool,
        superior: Option<&str>,
    ) -> Result<(), Refusal> {
        self.write(|meta| plan_rename(dn, rdn, deletes_old, superior, meta))
    }

    pub(crate) fn write(&self, plan: impl FnOnce(&Meta) -> Result<Plan, Refusal>) -> Result<(), Refusal> {
        let (sender, answer) = std::sync::mpsc::channel();
        self.begin(plan, move |answer| sender.send(answer).expect("the test waits"));
        answer.recv().expect("an answer").map(drop)
    }

    /// The same without waiting for the answer, which is given on any thread.
    pub(crate) fn begin(
        &self,
        plan: impl FnOnce(&Meta) -> Result<Plan, Refusal>,
        answer: impl FnOnce(Answer) + Send + 'static,
    ) {
        let root = self.service.root();
        let plan = match plan(root.meta()) {
            Ok(plan) => plan,
            Err(refusal) => return answer(Err(refusal)),
        };
        let job = WriteJob {
            request: Request::None,
            plan,
            version: root.meta().version,
            who: "cn=admin,dc=example,dc=com".into(),
            progress: Progress::default(),
            is_durable: true,
            answer: Box::new(answer),
        };
        drop(root);
        self.service.submit(Job::Write(Box::new(job))).expect("an open directory");
    }

    pub(crate) fn root(&self) -> Arc<Root<Model>> {
        self.service.root()
    }

    /// The values of an attribute of an entry as text, sorted; references as names.
    pub(crate) fn values(&self, dn: &str, attribute: &str) -> Vec<String> {
        let root = self.root();
        let Some(entry) = entry(&root, dn) else { return vec!["no such entry".to_owned()] };
        let (kind, options) = prepare::attribute(attribute.as_bytes(), root.meta()).expect("an attribute");
        values_of(&root, &entry, kind, &options)
    }
}

pub(crate) fn entry(root: &Root<Model>, dn: &str) -> Option<Arc<StoredEntry>> {
    let path =
        prepare::path(&prepare::name(dn.as_bytes()).expect("a name"), root.meta()).expect("a known name");
    root.resolve(&path).ok().and_then(|number| root.entry(number).cloned())
}

pub(crate) fn values_of(
    root: &Root<Model>,
    entry: &StoredEntry,
    kind: cowslip_ldap::schema::AttributeTypeId,
    options: &str,
) -> Vec<String> {
    let text = |value: &Value| match value {
        Value::Plain(text) | Value::Name(_, text) => String::from_utf8_lossy(text).into_owned(),
        Value::Entry(number) => root.dn(*number),
    };
    let mut values: Vec<String> = entry.values(kind, options).iter().map(text).collect();
    values.sort();
    values
}

/// Everything that a root holds, as text: for comparing two.
pub(crate) fn content(root: &Root<Model>) -> Vec<String> {
    let mut lines: Vec<String> = root
        .scan(ENTRIES)
        .map(|(number, entry)| {
            let mut attributes: Vec<String> = entry
                .descriptions()
                .map(|(kind, options)| {
                    format!("{};{options}={:?}", kind.0, values_of(root, entry, kind, options))
                })
                .collect();
            attributes.sort();
            let StoredEntry { uuid, created_us, creator, modified_us, modifier, csn, .. } = &**entry;
            format!(
                "{number} {} {uuid} {created_us} {creator} {modified_us} {modifier} {csn} {attributes:?}",
                root.dn(number)
            )
        })
        .collect();
    lines.sort();
    lines
}

/// Whether every index and reference of a root is what its entries give.
pub(crate) fn assert_indexes(root: &Root<Model>) {
    let rebuilt = root.rebuilt(Arc::clone(root.meta()));
    let layout = root.layout();
    for (index, _) in (0..).map(cowslip_engine::IndexIx).zip(&layout[0].indexes) {
        let entries = |root: &Root<Model>| -> Vec<(Vec<u8>, u32)> {
            root.range(ENTRIES, index, ..).map(|(key, number)| (key.bytes().to_vec(), number.0)).collect()
        };
        assert_eq!(entries(root), entries(&rebuilt), "index {}", index.0);
    }
    for (number, _) in root.scan(ENTRIES) {
        let referrers = |root: &Root<Model>| -> Vec<_> { Root::referrers(root, ENTRIES, &number).collect() };
        assert_eq!(referrers(root), referrers(&rebuilt), "references to {number}");
    }
}

/// The code of a refusal; success if there is none.
pub(crate) fn code(result: Result<(), Refusal>) -> ResultCode {
    result.map_or_else(|refusal| refusal.code, |()| ResultCode::Success)
}
