#!/usr/bin/env bash
# tools/setup where it cannot do its work: no apt-get, no root, no network, an archive with another hash; and where
# files were put in place by hand. Nothing outside a scratch folder is touched. Prints as cmocka does.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0
unset CTITAN_PLUGIN_PATH

# A PATH with little more than coreutils: no compiler, no apt-get, no Python.
bare=$scratch/bin
mkdir "$bare"
for name in bash env awk grep sed cat mkdir mv rm ln ls tr mktemp flock dirname uname head wc chmod tail touch id; do
    ln -s "$(command -v $name)" "$bare/$name"
done

go_on() { # in the tree as the case before left it
    name=$1
    echo "[ RUN      ] $name"
}
begin() {
    go_on "$1"
    rm -rf "$scratch/tree"
    mkdir "$scratch/tree"
    cp -r "$top/tools" "$scratch/tree"
}

# finish STATUS TEXT...: the last run ended with the status and printed every text.
finish() {
    local wanted=$1 text bad=''
    shift
    [[ $status == "$wanted" ]] || bad="wanted status $wanted, found $status"
    for text; do [[ $output == *"$text"* ]] || bad="wanted \"$text\""; done
    if [[ $bad ]]; then
        printf '%s in:\n%s\n[  FAILED  ] %s\n' "$bad" "$output" "$name"
        failed=1
    else
        echo "[       OK ] $name"
    fi
}

run() { output=$("$@" 2>&1 </dev/null); status=$?; }
skip() { printf '%s\n[  SKIPPED ] %s\n' "$1" "$name"; }

begin no_apt_get
run env PATH="$bare" bash "$scratch/tree/tools/setup" --tests
# python3 and pip may be found at /usr/bin in any case, and so python3-pip is not asked for.
finish 1 "missing packages: build-essential cmake ninja-build pkg-config libtomlplusplus-dev" "libcmocka-dev" \
    "no apt-get" ".deps/pjrt/include/pjrt_c_api.h (in xla-cpu-pjrt==0.0.1" ".deps/yyjson/yyjson.c" "bible-kjv" \
    "CTITAN_PLUGIN_PATH=" "--device.plugin_path="

begin check_changes_nothing
run env PATH="$bare" bash "$scratch/tree/tools/setup" --check
[[ ! -e $scratch/tree/.deps ]] || output="made .deps"
finish 1 "missing packages: build-essential"

begin apt_get_fails
printf '#!/bin/bash\necho "E: Temporary failure resolving"\nexit 100\n' >"$scratch/apt-get"
chmod +x "$scratch/apt-get"
mv "$scratch/apt-get" "$bare/apt-get"
if ((EUID == 0)); then
    run env PATH="$bare" bash "$scratch/tree/tools/setup"
    finish 1 "installing with apt-get: build-essential" "apt-get failed" "E: Temporary failure" \
        "missing packages: build-essential"
else
    skip "only root calls apt-get"
fi

begin not_root
if ((EUID != 0)); then
    run env PATH="$bare" bash "$scratch/tree/tools/setup"
    finish 1 "missing packages: build-essential" "as root: apt-get install --no-install-recommends build-essential"
elif command -v setpriv >/dev/null; then
    chmod 755 "$scratch"
    chown -R 65534 "$scratch/tree"
    run env PATH="$bare" "$(command -v setpriv)" --reuid 65534 --regid 65534 --clear-groups \
        bash "$scratch/tree/tools/setup"
    finish 1 "missing packages: build-essential" "as root: apt-get install --no-install-recommends build-essential"
else
    skip "no setpriv to give up root with"
fi
rm -f "$bare/apt-get"

begin placed_by_hand
while read -r group _ _ _ made; do
    [[ $group == header || $group == plugin || $group == yyjson ]] || continue
    mkdir -p "$scratch/tree/.deps/${made%/*}"
    echo mine >"$scratch/tree/.deps/$made"
done <"$top/tools/pypi.txt"
mkdir -p "$scratch/tree/.deps/text"
echo mine >"$scratch/tree/.deps/text/kjv.txt"
run bash "$scratch/tree/tools/setup"
[[ $(cat "$scratch"/tree/.deps/*/*.txt "$scratch"/tree/.deps/yyjson/yyjson.c) == $'mine\nmine' ]] || output="overwritten"
finish 0 "all there"

go_on another_version_is_fetched_again
mkdir "$scratch/tree/.deps/marks"
echo "yyjson==1.0 abc" >"$scratch/tree/.deps/marks/yyjson+yyjson.c"
run bash "$scratch/tree/tools/setup" --check
finish 1 "missing file: .deps/yyjson/yyjson.c (in yyjson=="

go_on own_plugin
rm "$scratch"/tree/.deps/marks/* "$scratch"/tree/.deps/pjrt/*/*.so
run bash "$scratch/tree/tools/setup" --check
[[ $status == 1 ]] || output="a missing plugin was not missed"
run env CTITAN_PLUGIN_PATH="$scratch/tree/.deps/yyjson/yyjson.c" bash "$scratch/tree/tools/setup" --check
finish 0 "all there"

go_on own_plugin_is_no_file
run env CTITAN_PLUGIN_PATH=/nowhere.so bash "$scratch/tree/tools/setup" --check
finish 1 "CTITAN_PLUGIN_PATH names no file: /nowhere.so"

# With pip: an index that answers nobody, then archives from a folder.
if /usr/bin/python3 -m pip --version >/dev/null 2>&1 && command -v unzip >/dev/null; then
    begin no_network
    mkdir -p "$scratch/tree/.deps/text"
    echo mine >"$scratch/tree/.deps/text/kjv.txt"
    run env -u PIP_FIND_LINKS PIP_RETRIES=0 PIP_INDEX_URL=http://127.0.0.1:9/ bash "$scratch/tree/tools/setup"
    finish 1 "pip could not fetch" "missing file: .deps/pjrt/include/pjrt_c_api.h" "CTITAN_PLUGIN_PATH="

    begin hash
    mkdir -p "$scratch/tree/.deps/text" "$scratch/links"
    echo mine >"$scratch/tree/.deps/text/kjv.txt"
    wheel=$(/usr/bin/python3 - "$scratch/links" <<'EOF'
import sys, zipfile
path = sys.argv[1] + "/tiny_pjrt-1.0-py3-none-any.whl"
with zipfile.ZipFile(path, "w") as wheel:
    wheel.writestr("tiny/tiny.so", "plugin")
    info = "tiny_pjrt-1.0.dist-info/"
    wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: tiny-pjrt\nVersion: 1.0\n")
    wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr(info + "RECORD", "")
print(path)
EOF
    )
    sha=$(sha256sum "$wheel" | cut -d' ' -f1)
    echo "plugin tiny-pjrt==1.0 ${sha/[0-9]/f} tiny/tiny.so pjrt/tiny/tiny.so" >"$scratch/tree/tools/pypi.txt"
    run env PIP_NO_INDEX=1 PIP_FIND_LINKS="$scratch/links" bash "$scratch/tree/tools/setup"
    [[ ! -e $scratch/tree/.deps/pjrt/tiny/tiny.so ]] || output="a file with another hash was taken"
    finish 1 "pip could not fetch tiny-pjrt==1.0" "missing file: .deps/pjrt/tiny/tiny.so"

    begin fetched
    mkdir -p "$scratch/tree/.deps/text"
    echo mine >"$scratch/tree/.deps/text/kjv.txt"
    echo "plugin tiny-pjrt==1.0 $sha tiny/tiny.so pjrt/tiny/tiny.so" >"$scratch/tree/tools/pypi.txt"
    run env PIP_NO_INDEX=1 PIP_FIND_LINKS="$scratch/links" bash "$scratch/tree/tools/setup"
    [[ $(cat "$scratch/tree/.deps/pjrt/tiny/tiny.so") == plugin ]] || output="not fetched: $output"
    finish 0 "all there"

    begin optional_cannot_be_fetched
    mkdir -p "$scratch/tree/.deps/text"
    echo mine >"$scratch/tree/.deps/text/kjv.txt"
    echo "tpu tiny-pjrt==2.0 $sha tiny/tiny.so pjrt/libtpu/libtpu.so" >"$scratch/tree/tools/pypi.txt"
    sed -i '/^tests/d' "$scratch/tree/tools/packages.txt"
    run env PIP_NO_INDEX=1 PIP_FIND_LINKS="$scratch/links" bash "$scratch/tree/tools/setup" --tests
    finish 0 "without .deps/pjrt/libtpu/libtpu.so (tiny-pjrt==2.0 of PyPI)" "pip could not fetch tiny-pjrt==2.0" \
        "all there"

    go_on optional_not_wanted
    run env CTITAN_NO_LIBTPU=1 bash "$scratch/tree/tools/setup" --tests
    [[ $output != *libtpu* ]] || output="libtpu was asked for"
    finish 0 "all there"

    go_on optional_fetched
    echo "tpu tiny-pjrt==1.0 $sha tiny/tiny.so pjrt/libtpu/libtpu.so" >"$scratch/tree/tools/pypi.txt"
    run env PIP_NO_INDEX=1 PIP_FIND_LINKS="$scratch/links" bash "$scratch/tree/tools/setup" --tests
    [[ $(cat "$scratch/tree/.deps/pjrt/libtpu/libtpu.so") == plugin ]] || output="not fetched: $output"
    finish 0 "all there"
else
    begin no_network
    skip "no pip or no unzip"
fi
exit $failed
