"""OpenStack's ovsdbapp against an OVSDB server: prints one line per fact. The argument is the remote."""
import sys

from ovsdbapp.backend.ovs_idl import connection
from ovsdbapp.backend.ovs_idl import event
from ovsdbapp.backend.ovs_idl import idlutils
from ovsdbapp.schema.ovn_northbound import impl_idl as nb_impl
from ovsdbapp.schema.ovn_southbound import impl_idl as sb_impl

LIMIT_S = 20


def open_api(remote, database, impl):
    idl = connection.OvsdbIdl.from_server(remote, database)
    link = connection.Connection(idl, timeout=LIMIT_S)
    return link, impl(link)


class SwitchCreated(event.WaitEvent):
    event_name = "SwitchCreated"

    def __init__(self, name):
        super().__init__((self.ROW_CREATE,), "Logical_Switch", (("name", "=", name),), timeout=LIMIT_S)


def northbound(remote):
    link, api = open_api(remote, "OVN_Northbound", nb_impl.OvnNbApiIdlImpl)
    created = SwitchCreated("sw0")
    link.idl.notify_handler = event.RowEventHandler()
    link.idl.notify = link.idl.notify_handler.notify
    link.idl.notify_handler.watch_event(created)
    api.ls_add("sw0").execute(check_error=True)
    print("event", created.wait())
    print("again", api.ls_add("sw0", may_exist=True).execute(check_error=True).name)
    with api.transaction(check_error=True) as txn:
        for at in range(5):
            txn.add(api.lsp_add("sw0", "lp%d" % at))
            txn.add(api.lsp_set_addresses("lp%d" % at, ["00:00:00:00:00:0%d" % at]))
        txn.add(api.lr_add("r0"))
        txn.add(api.lrp_add("r0", "r0p", "00:00:00:00:ff:00", ["10.0.0.1/24"]))
        txn.add(api.lb_add("lb0", "192.0.2.1:80", ["10.0.0.1:80", "10.0.0.2:80"]))
        txn.add(api.ls_lb_add("sw0", "lb0"))
        txn.add(api.pg_add("pg0", ["lp0", "lp1"]))
        txn.add(api.acl_add("sw0", "to-lport", 100, "ip4", "drop"))
        txn.add(api.db_set("Logical_Switch", "sw0", ("external_ids", {"a": "b"})))
    print(sorted(p.name for p in api.lsp_list("sw0").execute(check_error=True)))
    print(api.db_get("Logical_Switch", "sw0", "external_ids").execute(check_error=True))
    found = api.db_find("Logical_Switch_Port", ("name", "=", "lp3"), columns=["name", "addresses"])
    print(found.execute(check_error=True))
    print(len(api.acl_list("sw0").execute(check_error=True)), len(api.ls_lb_list("sw0").execute(check_error=True)))
    try:
        api.lsp_del("nosuch").execute(check_error=True)
    except (idlutils.RowNotFound, RuntimeError) as error:
        print("refused", type(error).__name__)
    api.db_clear("Logical_Switch", "sw0", "external_ids").execute(check_error=True)
    print(api.db_get("Logical_Switch", "sw0", "external_ids").execute(check_error=True))
    with api.transaction(check_error=True) as txn:
        txn.add(api.pg_del("pg0"))
        txn.add(api.ls_del("sw0"))
        txn.add(api.lr_del("r0"))
    print(api.db_list("Logical_Switch_Port", columns=["name"]).execute(check_error=True))
    link.stop()


def southbound(remote):
    link, api = open_api(remote, "OVN_Southbound", sb_impl.OvnSbApiIdlImpl)
    api.chassis_add("ch0", ["geneve", "vxlan"], "192.0.2.1").execute(check_error=True)
    print(sorted(e.type for e in api.chassis_list().execute(check_error=True)[0].encaps))
    with api.transaction(check_error=True) as txn:
        datapath = txn.add(api.db_create("Datapath_Binding", tunnel_key=1, external_ids={"name": "sw0"}))
        txn.add(api.db_create("Port_Binding", logical_port="lp0", tunnel_key=1, datapath=datapath))
    api.lsp_bind("lp0", "ch0").execute(check_error=True)
    print(api.db_get("Port_Binding", "lp0", "tunnel_key").execute(check_error=True))
    api.lsp_unbind("lp0").execute(check_error=True)
    api.chassis_del("ch0").execute(check_error=True)
    print(api.chassis_list().execute(check_error=True), api.db_list("Encap").execute(check_error=True))
    link.stop()


northbound(sys.argv[1])
southbound(sys.argv[1])
