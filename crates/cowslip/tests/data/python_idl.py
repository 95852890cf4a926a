"""Open vSwitch's Python IDL against an OVSDB server: prints one line per fact, so that two servers can be compared.

Arguments: the remote, and the schema file of the database Lab.
"""
import sys
import time

import ovs.db.idl
import ovs.jsonrpc
import ovs.poller
import ovs.stream
import ovs.vlog

LIMIT_S = 20


def wait(idl, done, others=()):
    """Runs the IDLs until done() is true."""
    end = time.time() + LIMIT_S
    while True:
        for one in (idl, *others):
            one.run()
        value = done()
        if value:
            return value
        if time.time() > end:
            sys.exit("timed out")
        poller = ovs.poller.Poller()
        for one in (idl, *others):
            one.wait(poller)
        poller.timer_wait(100)
        poller.block()


def commit(idl, txn, others=()):
    def done():
        status = txn.commit()
        return status if status != ovs.db.idl.Transaction.INCOMPLETE else None
    # The first step sends; the IDL may run only after it.
    return done() or wait(idl, done, others)


def open_idl(remote, schema, tables=None):
    helper = ovs.db.idl.SchemaHelper(location=schema)
    for table in tables or ("Root", "Kid", "Plain"):
        helper.register_table(table)
    if tables is None:
        # Not the whole table: a column named "or" makes no Python attribute.
        helper.register_columns("V", ["i", "r", "s12", "si", "m"])
    return ovs.db.idl.Idl(remote, helper)


def rows(idl, table, column):
    return sorted(getattr(row, column) for row in idl.tables[table].rows.values())


def main():
    remote, schema = sys.argv[1:]
    ovs.vlog.Vlog.init(None)
    idl = open_idl(remote, schema)
    wait(idl, idl.has_ever_connected)
    print("connected", idl.has_ever_connected())

    txn = ovs.db.idl.Transaction(idl)
    txn.add_comment("first")
    kid = txn.insert(idl.tables["Kid"])
    kid.name = "k1"
    root = txn.insert(idl.tables["Root"])
    root.name = "r1"
    root.kids = [kid]
    root.byname = {"k": kid}
    plain = txn.insert(idl.tables["Plain"])
    plain.name, plain.v = "p", 1
    value = txn.insert(idl.tables["V"])
    value.s12, value.r, value.m, value.si = [1, 2], 0.5, {"a": "b"}, [3, 1]
    print("insert", commit(idl, txn))
    print(rows(idl, "Root", "name"), rows(idl, "Kid", "name"), rows(idl, "V", "si"), rows(idl, "V", "m"))

    row = next(iter(idl.tables["V"].rows.values()))
    txn = ovs.db.idl.Transaction(idl)
    row.verify("i")
    row.i = 7
    row.addvalue("si", 9)
    row.delvalue("si", 3)
    row.setkey("m", "c", "d")
    row.delkey("m", "a")
    print("update", commit(idl, txn))
    print(row.i, sorted(row.si), row.m)

    number = next(iter(idl.tables["Plain"].rows.values()))
    txn = ovs.db.idl.Transaction(idl)
    number.name = "q"
    number.increment("v")
    print("increment", commit(idl, txn), txn.get_increment_new_value(), number.v)

    txn = ovs.db.idl.Transaction(idl)
    twin = txn.insert(idl.tables["Root"])
    twin.name = "r1"
    print("duplicate", commit(idl, txn), "constraint violation" in (txn.get_error() or ""))

    chosen = ovs.ovsuuid.from_string("a0000000-0000-4000-8000-0000000000ff")
    txn = ovs.db.idl.Transaction(idl)
    row = txn.insert(idl.tables["Root"], new_uuid=chosen, persist_uuid=True)
    row.name = "chosen"
    print("chosen uuid", commit(idl, txn), chosen in idl.tables["Root"].rows)

    other = open_idl(remote, schema, ["Plain"])
    other.cond_change("Plain", [["v", ">", 10]])
    wait(other, other.has_ever_connected)
    print("other sees", rows(other, "Plain", "name"))
    txn = ovs.db.idl.Transaction(idl)
    for at in range(3):
        row = txn.insert(idl.tables["Plain"])
        row.name, row.v = "n%d" % at, 10 + at
    print("insert", commit(idl, txn, [other]))
    wait(other, lambda: len(other.tables["Plain"].rows) == 2, [idl])
    print("other sees", rows(other, "Plain", "name"))
    other.cond_change("Plain", [["name", "==", "n0"]])
    wait(other, lambda: rows(other, "Plain", "name") == ["n0"], [idl])
    print("other sees", rows(other, "Plain", "name"))

    other.set_lock("L")
    wait(other, lambda: other.has_lock, [idl])
    idl.set_lock("L")
    wait(idl, lambda: idl.is_lock_contended, [other])
    print("locks", other.has_lock, idl.has_lock)
    other.close()
    wait(idl, lambda: idl.has_lock)
    txn = ovs.db.idl.Transaction(idl)
    next(iter(idl.tables["Root"].rows.values())).name = "locked"
    print("under lock", commit(idl, txn))

    txn = ovs.db.idl.Transaction(idl)
    for row in list(idl.tables["Root"].rows.values()):
        row.delete()
    print("delete", commit(idl, txn), rows(idl, "Root", "name"), rows(idl, "Kid", "name"))
    idl.close()


main()
