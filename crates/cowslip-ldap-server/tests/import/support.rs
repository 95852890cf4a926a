//! Short ways to import and export in memory.

use cowslip_engine::Root;
use cowslip_ldap::ldif::{LdifReader, LdifWriter};
use cowslip_ldap_server::export::{Dialect, ExportOptions, export};
use cowslip_ldap_server::import::{ImportOptions, ImportReport, Imported, Rejection, import};
use cowslip_ldap_server::model::Directory;
use cowslip_ldap_server::operations::prepare;
use cowslip_ldap_server::tree::Tree;

pub(crate) const SUFFIX: &str = "dc=example,dc=com";

pub(crate) struct Done {
    pub(crate) root: Root<Directory>,
    pub(crate) report: ImportReport,
    pub(crate) rejections: Vec<Rejection>,
}

pub(crate) fn imported(ldif: &[u8]) -> Done {
    imported_with(ldif, &ImportOptions::new([SUFFIX]))
}

pub(crate) fn imported_with(ldif: &[u8], options: &ImportOptions) -> Done {
    let mut rejections = Vec::new();
    let reject = &mut |rejection| rejections.push(rejection);
    let Imported { root, report } =
        import(LdifReader::new(ldif), options, &mut |_| {}, reject).expect("an import");
    assert_eq!(report.read, report.imported + report.rejected, "each record is counted once");
    assert_eq!(report.rejected, rejections.len() as u64, "each rejection is told");
    let (own, all) = (own_entries(options), root.len(cowslip_ldap_server::meta::ENTRIES) as u64);
    assert_eq!(all - own, report.imported, "what was imported is there");
    Done { root, report, rejections }
}

fn own_entries(options: &ImportOptions) -> u64 {
    let root = cowslip_ldap_server::service::initial_root(&options.service).expect("a directory");
    (root.len(cowslip_ldap_server::meta::ENTRIES) + options.indexes.len()) as u64
}

pub(crate) fn exported(root: &Root<Directory>, dialect: Dialect) -> String {
    let mut options = ExportOptions::default();
    options.dialect = dialect;
    let mut writer = LdifWriter::new(Vec::new());
    export(root, &mut writer, &options, &mut |_| {}).expect("memory takes it");
    String::from_utf8(writer.into_inner()).expect("LDIF is text")
}

/// The entry of a name, as LDIF.
pub(crate) fn entry(root: &Root<Directory>, dn: &str) -> String {
    let path = prepare::path(&prepare::name(dn.as_bytes()).expect("a name"), root.meta()).expect("a path");
    let number = root.resolve(&path).expect("the entry is there");
    let mut options = ExportOptions::default();
    options.below = Some(number);
    let mut writer = LdifWriter::new(Vec::new());
    export(root, &mut writer, &options, &mut |_| {}).expect("memory takes it");
    let text = String::from_utf8(writer.into_inner()).expect("LDIF is text");
    let text = text.strip_prefix("version: 1\n\n").expect("a version");
    text.split("\n\n").next().expect("an entry").replace("\n ", "")
}
