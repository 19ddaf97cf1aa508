# Shared by ./serve and ./test: what they need, fetched once. Read by `source`; call from the repository's root.

# One line about what is going on, on standard error.
say() { printf '\033[1m==>\033[0m %s\n' "$*" >&2; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

# install_packages NAME...: the Debian packages of tools/packages/NAME.txt that are not there yet.
install_packages() {
    local wanted present missing root_command
    wanted=$(for name in "$@"; do sed 's/#.*//' "tools/packages/$name.txt"; done | xargs -n1 | sort -u)
    if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
        say "This is not Debian: going on without installing anything. Needed are the equivalents of:" $wanted
        return
    fi
    present=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' $wanted 2>/dev/null | sed -n 's/^installed //p' | sort -u || true)
    missing=$(comm -23 <(echo "$wanted") <(echo "$present"))
    [ -n "$missing" ] || return 0
    root_command=
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || die "packages are missing, and neither root nor sudo is at hand: apt-get install" $missing
        root_command=sudo
    fi
    say "Installing Debian packages:" $missing
    $root_command apt-get update -qq || die "apt-get update failed"
    $root_command env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing \
        >"$(log_file packages)" 2>&1 || { tail -n 20 "$(log_file packages)" >&2; die "apt-get install failed (whole log: $(log_file packages))"; }
}

log_file() { mkdir -p build/logs; echo "build/logs/$1.log"; }

# configure PRESET [FLAG...]: quick when nothing changed.
configure() {
    local preset=$1 log
    log=$(log_file "configure-$preset")
    shift
    cmake --preset "$preset" "$@" >"$log" 2>&1 || { grep -A 12 'CMake Error' "$log" >&2; die "cmake failed (whole log: $log)"; }
}

# build PRESET [TARGET...]: builds what changed. Quiet unless it fails.
build() {
    local preset=$1 log started=$SECONDS
    shift
    log=$(log_file "build-$preset")
    say "Building build/$preset${*:+ ($*)}"
    cmake --build "build/$preset" ${*:+--target "$@"} >"$log" 2>&1 ||
        { grep -E -A 12 'error|FAILED' "$log" | head -n 60 >&2; die "the build failed (whole log: $log)"; }
    say "Built in $((SECONDS - started)) s"
}

# python_environment DIR REQUIREMENTS: a virtual environment with those packages, made again when the list changes.
python_environment() {
    local folder=$1 list=$2 stamp
    stamp=$(sha256sum "$list" | cut -c1-16)-$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    [ "$(cat "$folder/stamp" 2>/dev/null)" = "$stamp" ] && return 0
    say "Installing Python packages of $list into $folder"
    rm -rf "$folder"
    python3 -m venv "$folder" || return 1
    "$folder/bin/pip" install --quiet --disable-pip-version-check -r "$list" >"$(log_file python)" 2>&1 ||
        { tail -n 5 "$(log_file python)" >&2; rm -rf "$folder"; return 1; } # half of the packages would fail every suite
    echo "$stamp" >"$folder/stamp"
}
