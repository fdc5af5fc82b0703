# Head of every finding, sourced: a temporary folder, which is removed at the end with a server that still runs, and `expect`.
# shellcheck shell=sh
set -eu
findings=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || :; chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
export PYTHONPATH="$findings" PYTHONDONTWRITEBYTECODE=1
cd "$folder"

# expect SUBJECT SEEN RECORDED: ends with status 1 if they differ.
expect() {
	if [ "$2" = "$3" ]; then echo "as recorded: $1: $2"; else echo "CHANGED: $1: $2; recorded: $3"; exit 1; fi
}

# Packages of PyPI for python/bin/python, and of npm.
python_packages() {
	python3 -m venv python
	python/bin/pip install --quiet --disable-pip-version-check "$@"
}
node_packages() {
	npm install --silent --no-audit --no-fund --prefix . "$@"
}

# go_program NAME MODULE VERSION: ./NAME of main.go.
go_program() {
	export GOFLAGS=-mod=mod GOPATH="$folder/go" GOCACHE="$folder/cache" GOTOOLCHAIN=local
	printf 'module finding\ngo 1.22\nrequire %s %s\n' "$2" "$3" >go.mod
	go build -o "$1" . 2>build.log || { cat build.log; exit 1; }
}

# rust_program NAME DEPENDENCY...: ./NAME of main.rs; each dependency is a line of Cargo.toml.
rust_program() {
	program=$1
	shift
	printf '[package]\nname = "%s"\nversion = "0.0.0"\nedition = "2021"\n[[bin]]\nname = "%s"\npath = "main.rs"\n[dependencies]\n' \
		"$program" "$program" >Cargo.toml
	printf '%s\n' "$@" >>Cargo.toml
	export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$folder/target}"
	cargo build --quiet 2>build.log || { cat build.log; exit 1; }
	cp "$CARGO_TARGET_DIR/debug/$program" .
}

# Packages of Maven, as GROUP:NAME:VERSION, with those that they need, in jar.
maven_packages() {
	listed=
	for package; do
		listed="$listed<dependency><groupId>${package%%:*}</groupId><artifactId>$(echo "$package" | cut -d: -f2)</artifactId><version>${package##*:}</version></dependency>"
	done
	echo "<project><modelVersion>4.0.0</modelVersion><groupId>finding</groupId><artifactId>finding</artifactId><version>1</version><dependencies>$listed</dependencies></project>" >pom.xml
	mvn --quiet --batch-mode -Dstyle.color=never dependency:copy-dependencies -DoutputDirectory=jar >build.log || { cat build.log; exit 1; }
}

# Packages of Debian, as NAME=VERSION, unpacked in root.
debian_packages() {
	apt-get download -qq "$@" 2>/dev/null
	for package in ./*.deb; do dpkg -x "$package" root; done
}

# serve COMMAND...: $port is a free port, and replaces PORT in the command; the server before it ends.
serve() {
	[ -z "$server" ] || kill "$server" 2>/dev/null || :
	port=$(python3 -c 'import coap_probe; print(coap_probe.free_port())')
	for word; do
		shift
		if [ "$word" = PORT ]; then word=$port; fi
		set -- "$@" "$word"
	done
	"$@" 2>/dev/null &
	server=$!
}
