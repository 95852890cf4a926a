"""python-ldap, which is OpenLDAP's library, against a server: URL, name and password of its root are the arguments."""

import io
import sys

import ldap
import ldap.modlist
import ldap.schema
import ldif
from ldap.controls import RequestControl

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
    jpegPhoto=[b"\xff\xd8\x00\xff\n\r"], userPassword=[b"annpw"])

# The schema: each definition is parsed, and the classes' attributes are put together.
dn, subschema = ldap.schema.urlfetch(URL + "/" + SUFFIX)
assert dn.lower() == "cn=schema", dn
must, may = subschema.attribute_types(["inetOrgPerson"])
assert {a.names[0] for a in must.values()} >= {"sn", "cn", "objectClass"}
assert "jpegPhoto" in {a.names[0] for a in may.values()}
assert subschema.get_inheritedattr(ldap.schema.AttributeType, "cn", "equality") == "caseIgnoreMatch"
assert len(subschema.listall(ldap.schema.AttributeType)) > 150
assert len(subschema.listall(ldap.schema.MatchingRule)) > 30
assert subschema.get_obj(ldap.schema.ObjectClass, "groupOfNames").must

# Values are bytes.
((name, ann),) = root.search_s(ANN, ldap.SCOPE_BASE)
assert name == ANN and ann["jpegPhoto"] == [b"\xff\xd8\x00\xff\n\r"] and ann["cn"] == ["Ännchen".encode()], ann

# Modify. A control that the server does not know is refused if it is critical, and nothing is done.
try:
    root.modify_ext_s(ANN, [(ldap.MOD_REPLACE, "sn", [b"F"])], serverctrls=[RequestControl("1.2.3.4", True, b"x")])
    raise AssertionError("an unknown critical control is taken")
except ldap.UNAVAILABLE_CRITICAL_EXTENSION:
    pass
root.modify_ext_s(ANN, [(ldap.MOD_REPLACE, "sn", [b"E"])], serverctrls=[RequestControl("1.2.3.4", False, b"x")])
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
root.modify_s(ANN, [(ldap.MOD_REPLACE, "userPassword", [b"fresh"])])
try:
    user.simple_bind_s(ANN, "annpw")
    raise AssertionError("the old password")
except ldap.INVALID_CREDENTIALS:
    pass
user.simple_bind_s(ANN, "fresh")

# A large answer, one that is abandoned, and two at once.
for n in range(250):
    add("uid=u%d,ou=A,%s" % (n, SUFFIX), objectClass=[b"account"], uid=[b"u%d" % n], description=[b"y" * 4000])
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
assert reader.all_records[0][1]["jpegPhoto"] == [b"\xff\xd8\x00\xff\n\r"]

root.delete_s(ANN)
try:
    root.search_s(ANN, ldap.SCOPE_BASE)
    raise AssertionError("found after its deletion")
except ldap.NO_SUCH_OBJECT as error:
    assert error.args[0]["matched"].lower() == ("ou=B," + SUFFIX).lower(), error
root.unbind_s()
print("done")
