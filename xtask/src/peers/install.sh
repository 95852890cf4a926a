# Installs Debian packages without letting them start their services. Run by `cargo xtask peers` as root:
#   sh -s -- PACKAGE... < install.sh
# Debian's package scripts ask the program policy-rc.d before they start a service; its exit code 101 means no. Where the
# machine has one that says no already (as most containers do), it stays; any other is set aside and put back at the
# end, whatever happens. Ours carries a mark, so that one left behind by a killed run is known for what it is.
set -eu

policy=${XTASK_POLICY_FILE:-/usr/sbin/policy-rc.d}
apt_get=${XTASK_APT_GET:-apt-get}
aside=$policy.set-aside-by-xtask
mark='# written by cargo xtask peers'

is_ours() {
    grep -qxF "$mark" "$policy" 2>/dev/null
}

forbids() {
    verdict=0
    "$policy" openvswitch-switch start >/dev/null 2>&1 || verdict=$?
    [ "$verdict" = 101 ]
}

restore() {
    rm -f "$policy"
    if [ -e "$aside" ]; then mv "$aside" "$policy"; fi
}

if is_ours || ! { [ -x "$policy" ] && forbids; }; then
    if [ -e "$policy" ] && ! is_ours; then mv "$policy" "$aside"; fi
    trap restore EXIT
    trap 'exit 1' HUP INT TERM
    printf '#!/bin/sh\n%s\nexit 101\n' "$mark" >"$policy"
    chmod 755 "$policy"
fi

export DEBIAN_FRONTEND=noninteractive
# Standard input is this script: a package's question must not read on in it.
"$apt_get" update -q </dev/null
"$apt_get" -y -q -o DPkg::Lock::Timeout=120 --no-install-recommends install "$@" </dev/null
