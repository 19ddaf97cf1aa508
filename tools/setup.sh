# Shared by ./serve and ./test: installs what they need, once. Read it with `source` from the repository's root.

# say TEXT...: one line of progress on standard error; bold only on a terminal (https://no-color.org).
if [ -t 2 ] && [ -z "${NO_COLOR-}" ]; then
    say() { printf '\033[1m==>\033[0m %s\n' "$*" >&2; }
else
    say() { printf '==> %s\n' "$*" >&2; }
fi
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

# install_packages NAME...: installs the Debian packages of tools/packages/NAME.txt that are missing.
install_packages() {
    local wanted present missing root_command
    wanted=$(for name in "$@"; do sed 's/#.*//' "tools/packages/$name.txt"; done | xargs -n1 | sort -u)
    if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
        say "Not a Debian system: nothing is installed. Needed are the equivalents of:" $wanted
        return
    fi
    present=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' $wanted 2>/dev/null | sed -n 's/^installed //p' | sort -u || true)
    missing=$(comm -23 <(echo "$wanted") <(echo "$present"))
    [ -n "$missing" ] || return 0
    root_command=
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || die "packages are missing; as root, run: apt-get install" $missing
        root_command=sudo
    fi
    say "Installing Debian packages:" $missing
    $root_command apt-get update -qq || die "apt-get update failed"
    $root_command env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing \
        >"$(log_file packages)" 2>&1 || { tail -n 20 "$(log_file packages)" >&2; die "apt-get install failed (whole log: $(log_file packages))"; }
}

log_file() { mkdir -p build/logs; echo "build/logs/$1.log"; }

# configure PRESET [FLAG...]: takes no time if nothing changed.
configure() {
    local preset=$1 log
    log=$(log_file "configure-$preset")
    shift
    cmake --preset "$preset" "$@" >"$log" 2>&1 || { grep -A 12 'CMake Error' "$log" >&2; die "cmake failed (whole log: $log)"; }
}

# build PRESET [TARGET...]: builds what changed; prints compiler output only if it fails.
build() {
    local preset=$1 log started=$SECONDS
    shift
    log=$(log_file "build-$preset")
    say "Building build/$preset${*:+ ($*)}"
    cmake --build "build/$preset" ${*:+--target "$@"} >"$log" 2>&1 ||
        { grep -E -A 12 'error|FAILED' "$log" | head -n 60 >&2; die "the build failed (whole log: $log)"; }
    say "Built in $((SECONDS - started)) s"
}

# python_environment DIR REQUIREMENTS: creates a virtual environment with those packages, anew when the list changes.
python_environment() {
    local folder=$1 list=$2 stamp
    stamp=$(sha256sum "$list" | cut -c1-16)-$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    [ "$(cat "$folder/stamp" 2>/dev/null)" = "$stamp" ] && return 0
    say "Installing Python packages of $list into $folder"
    rm -rf "$folder"
    python3 -m venv "$folder" || return 1
    "$folder/bin/pip" install --quiet --disable-pip-version-check -r "$list" >"$(log_file python)" 2>&1 ||
        { tail -n 5 "$(log_file python)" >&2; rm -rf "$folder"; return 1; } # a partial environment would fail every suite
    echo "$stamp" >"$folder/stamp"
}

# What test suites need beside a build; tools/run_suites.py calls these. If one cannot be installed, its tests are skipped.

test_python() { python_environment .venv tests/requirements.txt || say "No Python packages: suites that need them are skipped"; }

text_python() {
    [ -x .venv/bin/pip ] && ! cmp -s tests/text/requirements.txt .venv/text-requirements.txt || return 0
    if .venv/bin/pip install --quiet --disable-pip-version-check -r tests/text/requirements.txt >"$(log_file python-text)" 2>&1; then
        cp tests/text/requirements.txt .venv/text-requirements.txt
    else
        say "tokenizers could not be installed (see build/logs/python-text.log): its tests are skipped"
    fi
}

# One package at a time: if one cannot be installed, only its tests are skipped.
pjrt_python() {
    local package is_whole=1
    [ -x .venv/bin/pip ] && ! cmp -s tests/pjrt/requirements.txt .venv/pjrt-requirements.txt || return 0
    for package in $(sed 's/#.*//' tests/pjrt/requirements.txt); do
        .venv/bin/pip install --quiet --disable-pip-version-check "$package" >"$(log_file python-pjrt)" 2>&1 ||
            { is_whole=0; say "$package could not be installed (see build/logs/python-pjrt.log): PJRT tests that need it are skipped"; }
    done
    [ $is_whole = 0 ] || cp tests/pjrt/requirements.txt .venv/pjrt-requirements.txt
}

# as_root COMMAND...: runs it with sudo where that is needed.
as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# Prometheus' check of metrics and alert rules, out of Debian's package of the server.
promtool_of_debian() {
    [ ! -x .cache/interop/usr/bin/promtool ] && ! command -v promtool >/dev/null || return 0
    say "Downloading promtool"
    mkdir -p .cache/interop/packages
    (cd .cache/interop/packages && { apt-get download -qq prometheus || { as_root apt-get update -qq && apt-get download -qq prometheus; }; } &&
        dpkg --fsys-tarfile prometheus_*.deb | tar -x -C .. ./usr/bin/promtool) >"$(log_file interop-promtool)" 2>&1 ||
        say "promtool could not be downloaded (see build/logs/interop-promtool.log): its tests are skipped"
}

# Proxies and clients of others. HAProxy and nginx are taken from Debian without being installed: installed, they would start to listen on this
# machine. tools/packages/test.txt has the libraries they need.
interop_programs() {
    local name
    promtool_of_debian
    for name in haproxy nginx; do
        { [ ! -x .cache/interop/usr/sbin/$name ] && ! command -v $name >/dev/null && [ ! -x /usr/sbin/$name ]; } || continue
        say "Downloading $name"
        mkdir -p .cache/interop/packages
        (cd .cache/interop/packages && { apt-get download -qq $name || { as_root apt-get update -qq && apt-get download -qq $name; }; } &&
            dpkg -x ${name}_*.deb ..) >"$(log_file interop-$name)" 2>&1 || say "$name could not be downloaded (see build/logs/interop-$name.log): its tests are skipped"
    done
    [ ! -x .cache/bin/interop-go -o tests/interop/go/main.go -nt .cache/bin/interop-go ] && command -v go >/dev/null || return 0
    say "Building the client in Go"
    mkdir -p .cache/bin
    (cd tests/interop/go && go build -o ../../../.cache/bin/interop-go .) >"$(log_file interop-go)" 2>&1 ||
        say "The client in Go could not be built (see build/logs/interop-go.log): its tests are skipped"
}

# h2spec is a Go program; go.mod in tools/h2spec pins its versions.
h2spec() {
    [ ! -x .cache/bin/h2spec ] && command -v go >/dev/null || return 0
    say "Building h2spec"
    mkdir -p .cache/bin
    (cd tools/h2spec && GOFLAGS=-mod=mod go build -o ../../.cache/bin/h2spec github.com/summerwind/h2spec/cmd/h2spec) \
        >"$(log_file h2spec-build)" 2>&1 || say "h2spec could not be built (see build/logs/h2spec-build.log): its tests are skipped"
}
