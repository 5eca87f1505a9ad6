# Installs the Debian packages that millrace needs; sourced by quickstart and test.
# Touches apt only when something is missing, and never asks anything.

build_packages=(
    g++ cmake ninja-build git
    libboost-dev libboost-graph-dev libeigen3-dev libdnnl-dev nlohmann-json3-dev libcli11-dev
)
figure_packages=(python3 python3-matplotlib)
test_packages=(
    doctest-dev libbenchmark-dev libboost-context-dev python3-jsonschema clang-format
    libopenmpi-dev openmpi-bin
)

installed() {
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

install_packages() {
    local missing=() package
    for package in "$@"; do
        installed "$package" || missing+=("$package")
    done
    if [ ${#missing[@]} -eq 0 ]; then
        return
    fi

    local as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        if ! sudo -n true 2>/dev/null; then
            echo "These Debian packages are missing, and installing them needs root or a sudo that asks no password:" >&2
            echo "    ${missing[*]}" >&2
            echo "Run this as root:  apt-get install --no-install-recommends ${missing[*]}" >&2
            exit 1
        fi
        as_root=(sudo -n)
    fi
    echo "Installing ${missing[*]}"
    # A new machine may still be installing its own updates: wait for that.
    local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=600)
    "${apt[@]}" update </dev/null
    "${apt[@]}" install -y --no-install-recommends "${missing[@]}" </dev/null >/dev/null
}
