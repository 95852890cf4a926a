"""python-ldap, which is OpenLDAP's library, against a server: URL, name and password of its root are the arguments."""

import io
import sys

import ldap
import ldap.controls.readentry
import ldap.controls.simple
import ldap.modlist
import ldap.schema
import ldif
from ldap.controls import SimplePagedResultsControl
from ldap.controls.libldap import AssertionControl

SUFFIX = "dc=example,dc=com"
URL, ROOT, PASSWORD = sys.argv[1:4]

root = ldap.initialize(URL)
root.protocol_version = 3
root.simple_bind_s(ROOT, PASSWORD)
assert root.whoami_s() == "dn:" + ROOT


def add(dn, **attributes):
    root.add_s(dn, ldap.modlist.addModlist(attributes))


add(SUFFIX, objectClass=[b"domain"], dc=[b"example"])
add("ou=A," + SUFFIX, objectClass=[b"organizationalUnit"], ou=[b"A"])
add("ou=B," + SUFFIX, objectClass=[b"organizationalUnit"], ou=[b"B"])
ANN = "uid=ann,ou=A," + SUFFIX
add(ANN, objectClass=[b"inetOrgPerson"], uid=[b"ann"], cn=["Ännchen".encode()], sn=[b"D"],
    jpegPhoto=[b"\x00\xff\n\r"], userPassword=[b"annpw"])

# The schema: each definition is parsed, and the classes' attributes are put together.
dn, subschema = ldap.schema.urlfetch(URL + "/" + SUFFIX)
assert dn.lower() == "cn=schema", dn
must, may = subschema.attribute_types(["inetOrgPerson"])
assert {a.names[0] for a in must.values()} >= {"sn", "cn", "objectClass"}
assert "jpegPhoto" in {a.names[0] for a in may.values()}
assert subschema.get_inheritedattr(ldap.schema.AttributeType, "cn", "equality") == "caseIgnoreMatch"
assert len(subschema.listall(ldap.schema.AttributeType)) > 200
assert len(subschema.listall(ldap.schema.MatchingRule)) > 30
assert subschema.get_obj(ldap.schema.ObjectClass, "groupOfNames").must

# Values are bytes.
((name, ann),) = root.search_s(ANN, ldap.SCOPE_BASE)
assert name == ANN and ann["jpegPhoto"] == [b"\x00\xff\n\r"] and ann["cn"] == ["Ännchen".encode()], ann

# Modify, with controls.
pre = ldap.controls.readentry.PreReadControl(criticality=True, attrList=["sn"])
post = ldap.controls.readentry.PostReadControl(criticality=True, attrList=["sn"])
message = root.modify_ext(ANN, [(ldap.MOD_REPLACE, "sn", [b"E"])], serverctrls=[pre, post])
_, _, _, controls = root.result3(message)
assert [c.entry["sn"] for c in controls] == [["D"], ["E"]] or [c.entry["sn"] for c in controls] == [[b"D"], [b"E"]]
try:
    root.modify_ext_s(ANN, [(ldap.MOD_REPLACE, "sn", [b"F"])], serverctrls=[AssertionControl(True, "(sn=other)")])
    raise AssertionError("the assertion control does nothing")
except ldap.ASSERTION_FAILED:
    pass
assert root.compare_s(ANN, "sn", b"e") is True
assert root.compare_s(ANN, "sn", b"D") is False
for change, error in [
    ([(ldap.MOD_ADD, "sn", [b"E"])], ldap.TYPE_OR_VALUE_EXISTS),
    ([(ldap.MOD_DELETE, "sn", [b"none"])], ldap.NO_SUCH_ATTRIBUTE),
    ([(ldap.MOD_DELETE, "sn", None)], ldap.OBJECT_CLASS_VIOLATION),
    ([(ldap.MOD_ADD, "noSuchAttribute", [b"x"])], ldap.UNDEFINED_TYPE),
    ([(ldap.MOD_REPLACE, "uid", [b"other"])], ldap.NOT_ALLOWED_ON_RDN),
]:
    try:
        root.modify_s(ANN, change)
        raise AssertionError("no error for %r" % (change,))
    except error:
        pass

# Rename and move at once.
root.rename_s(ANN, "uid=anna", newsuperior="ou=B," + SUFFIX, delold=1)
ANN = "uid=anna,ou=B," + SUFFIX
((_, ann),) = root.search_s(SUFFIX, ldap.SCOPE_SUBTREE, "(uid=ann*)", ["uid"])
assert ann == {"uid": [b"anna"]}, ann

# Passwords.
user = ldap.initialize(URL)
user.simple_bind_s(ANN, "annpw")
root.passwd_s(ANN, None, "fresh")
try:
    user.simple_bind_s(ANN, "annpw")
    raise AssertionError("the old password")
except ldap.INVALID_CREDENTIALS:
    pass
user.simple_bind_s(ANN, "fresh")

# A large answer in pages; an answer that nobody waits for, and one that is abandoned.
for n in range(250):
    add("uid=u%d,ou=A,%s" % (n, SUFFIX), objectClass=[b"account"], uid=[b"u%d" % n], description=[b"y" * 4000])
page = SimplePagedResultsControl(True, size=60, cookie="")
found, pages = [], 0
while True:
    message = root.search_ext("ou=A," + SUFFIX, ldap.SCOPE_ONELEVEL, "(uid=u*)", serverctrls=[page])
    _, entries, _, controls = root.result3(message)
    found += [name for name, _ in entries]
    pages += 1
    page.cookie = [c for c in controls if c.controlType == SimplePagedResultsControl.controlType][0].cookie
    if not page.cookie:
        break
assert (len(found), len(set(found)), pages) == (250, 250, 5), (len(found), pages)
message = root.search_ext("ou=A," + SUFFIX, ldap.SCOPE_ONELEVEL)
root.abandon(message)
first = root.search_ext("ou=A," + SUFFIX, ldap.SCOPE_ONELEVEL)
second = root.search_ext(ANN, ldap.SCOPE_BASE)
assert len(root.result3(second)[1]) == 1
assert len(root.result3(first)[1]) == 250

# LDIF by the library's own reader and writer.
out = io.StringIO()
writer = ldif.LDIFWriter(out)
for name, entry in root.search_s(SUFFIX, ldap.SCOPE_SUBTREE, "(jpegPhoto=*)"):
    writer.unparse(name, entry)
reader = ldif.LDIFRecordList(io.StringIO(out.getvalue()))
reader.parse()
assert reader.all_records[0][1]["jpegPhoto"] == [b"\x00\xff\n\r"]

root.delete_s(ANN)
try:
    root.search_s(ANN, ldap.SCOPE_BASE)
    raise AssertionError("found after its deletion")
except ldap.NO_SUCH_OBJECT as error:
    assert error.args[0]["matched"].lower() == ("ou=B," + SUFFIX).lower(), error
root.unbind_s()
print("done")
