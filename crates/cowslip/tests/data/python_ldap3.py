"""Python's ldap3 against a server: URL, name and password of its root are the arguments."""

import sys
import uuid

import ldap3
from ldap3.core.exceptions import LDAPNoSuchObjectResult
from ldap3.utils.conv import escape_filter_chars

SUFFIX = "dc=example,dc=com"
URL, ROOT, PASSWORD = sys.argv[1:4]

server = ldap3.Server(URL, get_info=ldap3.ALL)
root = ldap3.Connection(server, ROOT, PASSWORD, auto_bind=True, raise_exceptions=True)

# What it reads when it binds.
assert SUFFIX in server.info.naming_contexts, server.info
assert "1.3.6.1.4.1.4203.1.11.3" in [e[0] for e in server.info.supported_extensions]
assert "inetOrgPerson" in server.schema.object_classes
assert server.schema.attribute_types["cn"].oid == "2.5.4.3"
assert server.schema.attribute_types["uidNumber"].single_value
assert "caseIgnoreMatch" in server.schema.matching_rules
assert len(server.schema.attribute_types) > 150, len(server.schema.attribute_types)
assert len(server.schema.ldap_syntaxes) > 20
assert root.extend.standard.who_am_i() == "dn:" + ROOT

# It checks names and values by the schema that it has read.
root.add(SUFFIX, "domain", {"dc": "example"})
root.add("ou=People," + SUFFIX, "organizationalUnit", {"ou": "People"})
root.add("ou=Old," + SUFFIX, "organizationalUnit", {"ou": "Old"})
ZOE = "cn=Zoë \\+ Söhne,ou=People," + SUFFIX
PHOTO = b"\xff\xd8" + bytes(range(256)) * 40
root.add(ZOE, ["inetOrgPerson", "posixAccount"], {
    "cn": "Zoë + Söhne", "sn": ["Söhne", "日本"], "uid": "zoe", "uidNumber": 7, "gidNumber": 7,
    "homeDirectory": "/", "jpegPhoto": PHOTO, "userPassword": "zoepw"})
assert root.search(ZOE, "(objectClass=*)", ldap3.BASE, attributes=["*", "+"])
zoe = root.entries[0]
assert zoe.jpegPhoto.raw_values == [PHOTO]
assert sorted(zoe.sn.values) == ["Söhne", "日本"], zoe
assert zoe.uidNumber.value == 7
assert uuid.UUID(str(zoe.entryUUID.value).strip("{}"))
assert zoe.createTimestamp.value.year >= 2024

# Scopes, filters.
def names(base, text, scope):
    root.search(base, text, scope, attributes=ldap3.NO_ATTRIBUTES)
    return [str(entry.entry_dn) for entry in root.entries]

assert len(names(SUFFIX, "(objectClass=*)", ldap3.SUBTREE)) == 4
assert len(names(SUFFIX, "(objectClass=*)", ldap3.LEVEL)) == 2
assert names(SUFFIX, "(sn=日*)", ldap3.SUBTREE) == [ZOE], names(SUFFIX, "(sn=日*)", ldap3.SUBTREE)
assert names(SUFFIX, "(cn=%s)" % escape_filter_chars("zoË + söhne"), ldap3.SUBTREE) == [ZOE]
assert names(SUFFIX, "(jpegPhoto=*)", ldap3.SUBTREE) == [ZOE]
assert names(SUFFIX, "(ou:dn:=people)", ldap3.SUBTREE) == ["ou=People," + SUFFIX, ZOE]

# Modifications.
root.modify(ZOE, {
    "sn": [(ldap3.MODIFY_DELETE, ["日本"]), (ldap3.MODIFY_ADD, ["Doe"])],
    "description": [(ldap3.MODIFY_REPLACE, ["a", "b"])],
    "uidNumber": [(ldap3.MODIFY_INCREMENT, [3])]})
assert root.compare(ZOE, "uidNumber", "10")
assert root.compare(ZOE, "sn", "doe")
assert not root.compare(ZOE, "sn", "日本")

# Renames.
root.modify_dn(ZOE, "cn=Zoe", delete_old_dn=False, new_superior="ou=Old," + SUFFIX)
ZOE = "cn=Zoe,ou=Old," + SUFFIX
assert root.search(ZOE, "(cn=Zoë \\2b Söhne)", ldap3.BASE, attributes="cn")
assert sorted(root.entries[0].cn.values) == ["Zoe", "Zoë + Söhne"]

# A user's own connection, and a new password.
user = ldap3.Connection(server, ZOE, "zoepw", auto_bind=True)
assert user.extend.standard.who_am_i().lower() == ("dn:" + ZOE).lower()
user.unbind()
root.modify(ZOE, {"userPassword": [(ldap3.MODIFY_REPLACE, ["fresh"])]})
assert not ldap3.Connection(server, ZOE, "zoepw").bind()
assert ldap3.Connection(server, ZOE, "fresh").bind()

# A large answer.
for n in range(300):
    root.add("uid=u%d,ou=People,%s" % (n, SUFFIX), ["account"], {"uid": "u%d" % n, "description": "x" * 5000})
assert root.search("ou=People," + SUFFIX, "(uid=u*)", ldap3.LEVEL, attributes=["uid", "description"])
assert len({entry.entry_dn for entry in root.entries}) == 300
assert all(entry.description.value == "x" * 5000 for entry in root.entries)
root.search("ou=People," + SUFFIX, "(uid=u*)", ldap3.LEVEL, size_limit=20, attributes=ldap3.NO_ATTRIBUTES)
assert root.result["description"] == "sizeLimitExceeded" and len(root.entries) == 20, root.result

# Deletion.
root.delete(ZOE)
try:
    root.search(ZOE, "(objectClass=*)", ldap3.BASE)
    raise AssertionError("found after its deletion")
except LDAPNoSuchObjectResult as error:
    assert error.dn.lower() == ("ou=Old," + SUFFIX).lower(), error.dn
root.unbind()
print("done")
