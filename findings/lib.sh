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
