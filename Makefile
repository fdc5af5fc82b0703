# thinair: `make` lists the goals.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.ONESHELL:
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory

# The folder from which make was called, also with `make -C`: CAPTURE is relative to it.
CALLER := $(PWD)
TARGET := $(or $(CARGO_TARGET_DIR),target)

REPORT := out/report.html
CAPTURE ?=
export CALLER CAPTURE REPORT

# What the engines are built for without an operating system, and the programs that are measured.
EMBEDDED := thumbv7em-none-eabihf
NO_STD := $(EMBEDDED) wasm32-unknown-unknown
RISC_V := riscv32imc-unknown-none-elf
FIRMWARE := $(TARGET)/firmware/$(EMBEDDED)/release
CONTEXTS := 4

ONLY ?=
FUZZ_SECONDS ?= 60
PACKETS ?= 1000000
SEED ?= 2
HOURS ?= 4
PACKAGES ?= out/package

ifdef CI
export CARGO_TERM_COLOR := never
BOLD :=
PLAIN :=
else
BOLD := $(shell [ -t 1 ] && tput bold 2>/dev/null)
PLAIN := $(shell [ -t 1 ] && tput sgr0 2>/dev/null)
endif
comma := ,
heading = printf '\n%s== %s%s%s\n' '$(BOLD)' '$(1)' "$${CI:+ (after $$SECONDS s)}" '$(PLAIN)'

.PHONY: help demo test peers robustness soak dist-test package c python web bench fuzz lint doc docs sizes results
.DEFAULT_GOAL := help

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile

demo: ## what header compression saves on a real capture; CAPTURE=FILE takes another one
	@$(call heading,Building the command)
	# What the demo runs, and no more: a minute on two cores.
	cargo build --profile demo --locked -p thinair --no-default-features --features analyze
	case $$CAPTURE in
	'') CAPTURE=captures/coap_udp6_get_con.pcap ;;
	/*) ;;
	*) CAPTURE=$$CALLER/$$CAPTURE ;;
	esac
	$(call heading,Every packet compressed and decompressed)
	mkdir -p "$$(dirname "$$REPORT")"
	cargo run --quiet --profile demo --locked -p thinair --no-default-features --features analyze -- analyze "$$CAPTURE" --html "$$REPORT"
	echo
	echo "Report: $$PWD/$$REPORT"

test: ## set up, then run every test
	@scripts/need test
	# Downloads wait, builds compute: side by side.
	trap 'kill $$(jobs -p) 2>/dev/null || true' EXIT
	peers=()
	tests/workspace/peers/setup '$(TARGET)/coap-peers/python' & peers+=($$!)
	tests/workspace/peers/californium/setup '$(TARGET)/coap-peers/californium' & peers+=($$!)
	tests/workspace/peers/setup-node '$(TARGET)/http-peers/node' & peers+=($$!)
	$(call heading,Tests)
	cargo test --locked --workspace --no-run 2> >(grep --line-buffered -v '^  Executable ' >&2)
	for peer in "$${peers[@]}"; do wait "$$peer"; done
	# What tests print is shown: how many vectors there were, and what was skipped.
	# Both commands are built with them, and run by those that run them: they would build them once more otherwise.
	export THINAIR='$(abspath $(TARGET))/debug/thinair' THINAIR_LAB='$(abspath $(TARGET))/debug/thinair-lab'
	mkdir -p '$(TARGET)'
	# The page and the Python package, whose builds are their own, while tests of networks wait. The package of the laboratory builds all of
	# it once more: it is part of dist-test.
	nice scripts/web quick '$(TARGET)/web/page' >'$(TARGET)/web.log' 2>&1 & web=$$!
	nice scripts/python test '$(TARGET)' bindings/python >'$(TARGET)/python.log' 2>&1 & python=$$!
	# Tests of networks wait more than they compute.
	RUST_TEST_THREADS=$${RUST_TEST_THREADS:-$$((2 * $$(nproc)))} scripts/tests 2>&1 | tee '$(TARGET)/tests.log'
	cargo test --locked --quiet -p thinair-ule --features fast-crc --lib
	$(call heading,Instructions of a packet)
	scripts/instructions '$(TARGET)'
	$(call heading,Documentation)
	RUSTDOCFLAGS='-D warnings' cargo doc --workspace --locked --no-deps --quiet
	$(call heading,Without an operating system)
	# Without optimization, as nothing of it is run.
	bare() {
		RUSTFLAGS='-D warnings' cargo "$$1" --locked --quiet --target "$$target" "$${@:2}" \
			--config profile.dev.opt-level=0 --config profile.dev.package.thinair-rohc.opt-level=0
	}
	for target in $$(scripts/targets $(NO_STD)); do
		bare build --no-default-features -p thinair-wire -p thinair-rohc -p thinair-link -p thinair-coap -p thinair-dtls -p thinair-http -p thinair-lowpan -p thinair-segment -p thinair-ule
		bare build -p thinair-rohc -p thinair-link
		echo "thinair-wire, -rohc, -link, -coap, -dtls, -http, -lowpan, -segment and -ule are built for $$target"
	done
	for target in $$(scripts/targets $(NO_STD) $(RISC_V)); do
		bare rustc -p thinair-c --crate-type staticlib --no-default-features --features udp,ip
		echo "libthinair-rohc is built for $$target"
	done
	cargo run --locked --quiet -p thinair-rohc --no-default-features --features udp,ip --example no_alloc
	$(MAKE) sizes
	$(call heading,Python package)
	wait $$python || { cat '$(TARGET)/python.log'; exit 1; }
	tee -a '$(TARGET)/tests.log' <'$(TARGET)/python.log'
	$(call heading,The page in browsers)
	wait $$web || { cat '$(TARGET)/web.log'; exit 1; }
	tee -a '$(TARGET)/tests.log' <'$(TARGET)/web.log'
	$(call heading,Skipped tests)
	scripts/skips '$(TARGET)/tests.log'
	$(call heading,All tests passed)

peers: ## programs around rohc-lib in ROHC_PREFIX, and our packets through it and back; bench and test use them afterwards
	@$(call heading,Programs around rohc-lib)
	target=$$(mkdir -p '$(TARGET)' && cd '$(TARGET)' && pwd)
	$(MAKE) -C extras/peers OUT="$$target/peers" ROHC_PREFIX='$(ROHC_PREFIX)'
	$(call heading,rohc-lib reads all packets$(comma) and its packets are read)
	cargo test --locked --quiet -p thinair-tests --test peer_decompressor --test peer_compressor -- --nocapture

robustness: ## pauses, counts, loss, reordering, each pair of values: PACKETS (1000000) a cell, SEED (2); goes on where it was interrupted
	@export THINAIR_PACKETS='$(PACKETS)' THINAIR_SEED='$(SEED)'
	# A cell that these programs have measured with this seed is not measured again.
	mkdir -p '$(TARGET)/robustness'
	THINAIR_RESULTS=$$(cd '$(TARGET)/robustness' && pwd)
	export THINAIR_RESULTS
	matrices=(pause_matrix silence impaired_matrix heavy_loss rohcv2_impaired)
	cargo test --profile bench --locked --quiet -p thinair-rohc "$${matrices[@]/#/--test=}" --no-run
	status=0
	measure() { cargo test --profile bench --locked --quiet -p thinair-rohc --test "$$1" -- --nocapture --test-threads=1 || status=$$?; }
	$(call heading,Behind 1 to 1$(comma)024 losses in a row: wrong/bound$(comma) not delivered behind a gap$(comma) longest outage)
	measure silence
	$(call heading,Loss$(comma) reordering$(comma) duplicates: wrong/bound$(comma) not delivered of 1$(comma)000$(comma) longest outage)
	measure impaired_matrix
	$(call heading,Nearly all is lost: wrong/bound$(comma) not delivered of 1$(comma)000)
	measure heavy_loss
	$(call heading,ROHCv2: wrong/bound$(comma) not delivered of 1$(comma)000$(comma) longest outage)
	measure rohcv2_impaired
	$(call heading,Senders that pause; carriers that count)
	measure pause_matrix
	$(call heading,Ten times the random flows of the tests)
	env --unset=THINAIR_PACKETS THINAIR_CASES=10 cargo test --profile bench --locked --quiet -p thinair-rohc --test all || status=$$?
	echo
	echo "That took $$((SECONDS / 60)) minutes, without those before an interruption"
	exit $$status

soak: ## two ends of a tunnel for HOURS (4): new keys, loss, roaming, kills at random, a hostile neighbor; as root
	@scripts/soak $$(($(HOURS) * 3600))

package: ## archives and Debian packages with a static binary, for x86-64 and AArch64, into PACKAGES (out/package)
	@scripts/need package
	$(call heading,Packages)
	scripts/package '$(PACKAGES)'

c: ## libraries for C: libthinair-rohc and librohc, shared and static, with headers, into out/c
	@scripts/need c
	$(call heading,Libraries for C)
	scripts/c-libraries out/c

python: ## the Python packages as wheels, into out/python
	@scripts/need python
	$(call heading,Wheels)
	scripts/python wheel out/python

web: ## the page that analyzes captures in a browser, into out/web
	@scripts/need web
	$(call heading,The page)
	scripts/web build out/web

dist-test: ## what takes long: packages, built twice, installed and removed; libraries for C with sanitizers; crates as published
	@scripts/need dist-test
	scripts/dist-test '$(PACKAGES)'

sizes: ## memory of a context; flash and RAM of firmware with 4 contexts
	@$(call heading,Sizes)
	programs=()
	if [ -n "$$(scripts/targets $(EMBEDDED))" ]; then
		programs=($(CONTEXTS))
		for profiles in udp,ip udp,ip,coap rtp,udp,esp,ip,udp-lite,tcp,coap; do
			cargo build --manifest-path firmware/Cargo.toml --target-dir '$(TARGET)/firmware' --target $(EMBEDDED) \
				--release --locked --quiet --no-default-features --features $$profiles
			mkdir -p '$(FIRMWARE)'/$$profiles
			cp '$(FIRMWARE)'/{compressor,decompressor,endpoint} '$(FIRMWARE)'/$$profiles
			programs+=('$(FIRMWARE)'/$$profiles/{compressor,decompressor,endpoint})
		done
	fi
	# With the features of the whole workspace: what the tests have built is not built again.
	cargo build --workspace --bin sizes --locked --quiet
	'$(TARGET)/debug/sizes' "$${programs[@]}"

bench: ## time and instructions per packet, memory per context, what damage costs
	@scripts/need bench
	$(call heading,Benchmarks)
	cargo bench --locked -p thinair-rohc --bench figures
	cargo bench --locked -p thinair-rohc --bench damage
	if command -v valgrind >/dev/null; then
		GUNGRAUN_RUNNER=$$(scripts/count-runner '$(TARGET)')
		export GUNGRAUN_RUNNER
		cargo bench --locked -p thinair-rohc --bench instructions
		cargo bench --locked -p thinair-ule --features fast-crc --bench instructions
		cargo bench --locked -p thinair-coap --bench instructions
		cargo bench --locked -p thinair-coap --features oscore --bench oscore
		cargo bench --locked -p thinair-librohc --bench calls
	else
		echo "Instructions are not counted: valgrind is missing"
	fi
	$(call heading,Instructions of the paper coap-delay: x86-64 and Cortex-M4)
	scripts/delay '$(TARGET)'
	cargo bench --locked -p thinair-rohc --bench throughput -- --quiet
	cargo bench --locked -p thinair-ule --features fast-crc --bench throughput -- --quiet
	$(call heading,One program with rohc-lib and with librohc; the same batches in Rust)
	if command -v cc >/dev/null && command -v pkg-config >/dev/null; then
		scripts/c-libraries '$(TARGET)/c' >/dev/null
		target=$$(cd '$(TARGET)' && pwd)
		$(MAKE) -C extras/peers OUT="$$target/beside" ROHC_PREFIX="$$target/c" "$$target/beside/times"
	fi
	cargo bench --locked -p thinair-rohc --bench beside
	$(call heading,Encryption; the tunnel beside plain forwarders and wireguard-go$(comma) as root)
	cargo bench --locked -p thinair-session --bench encryption
	cargo bench --locked -p thinair-tunnel --bench stream
	cargo bench --locked -p thinair-simulation --bench tunnel
	cargo test --profile optimized --locked --quiet -p thinair-tests --test tunnel_run floods -- --ignored --nocapture
	$(call heading,Virtual time: events and exchanges a second; hops of CSMA-CA)
	cargo bench --locked -p thinair-simulation --bench events
	cargo bench --locked -p thinair-simulation --bench chains
	$(call heading,TCP beside that of the kernel; a transport stream; segment sizes: in real time$(comma) as root)
	if [ "$$(id -u)" -eq 0 ]; then
		cargo run --profile optimized --locked --quiet -p thinair-simulation --example kernel_tcp
		cargo run --profile optimized --locked --quiet -p thinair-simulation --example stream_in_real_time
		cargo test --locked --quiet -p thinair-tests --test segment_sizes -- --ignored --nocapture
	else
		echo "Nothing is measured in real time: that needs root"
	fi
	$(call heading,An analysis: schemes$(comma) threads)
	cargo bench --locked -p thinair-analyze --bench schemes
	$(call heading,A CoAP server beside that of libcoap)
	cargo bench --locked -p thinair-services --bench server -- 300000
	$(MAKE) sizes
	$(call heading,In one table)
	cargo bench --locked --quiet -p thinair-rohc --bench numbers

fuzz: ## every fuzz target for FUZZ_SECONDS (60)
	@scripts/need fuzz
	$(call heading,Fuzzing each target for $(FUZZ_SECONDS) s)
	cargo +nightly --version >/dev/null 2>&1 || rustup toolchain install nightly --profile minimal
	cargo fuzz --version >/dev/null 2>&1 || cargo install --quiet --locked cargo-fuzz
	mkdir -p '$(TARGET)/fuzz-logs'
	cargo +nightly fuzz build
	found=0
	for target in $$(cargo +nightly fuzz list); do
		log='$(TARGET)'/fuzz-logs/$$target.log
		corpus=(fuzz/corpus/$$target)
		mkdir -p "$${corpus[@]}"
		# Short inputs hold no flow: lengths are not held back. Real captures are seeds.
		options=(-max_total_time=$(FUZZ_SECONDS) -len_control=0 -max_len=3000)
		if [ $$target = capture ]; then
			corpus+=(captures)
			options+=(-max_len=65536)
		fi
		if cargo +nightly fuzz run $$target "$${corpus[@]}" -- "$${options[@]}" >"$$log" 2>&1; then
			sed -n "s/^#\([0-9]*\).*DONE *cov: \([0-9]*\).*/\1 inputs, \2 edges: $$target/p" "$$log"
		else
			found=1
			echo "FAILED: $$target, see $$log"
			grep -a -A1 -E 'panicked at|ERROR: |cargo fuzz tmin' "$$log" || tail -20 "$$log"
		fi
	done
	exit $$found

lint: ## formatting, clippy, words of comments and crates, warnings are errors
	@scripts/need lint
	for component in rustfmt clippy; do
		cargo $${component#rust} --version >/dev/null 2>&1 || rustup component add $$component
	done
	$(call heading,Formatting)
	cargo fmt --all --check
	for folder in bindings/python bindings/web firmware fuzz lab/python; do (cd $$folder && cargo fmt --check); done
	$(call heading,Words of comments)
	scripts/words
	$(call heading,Lints)
	cargo clippy --workspace --all-targets --locked --quiet -- -D warnings
	for folder in bindings/web fuzz; do
		cargo clippy --manifest-path $$folder/Cargo.toml --workspace --target-dir '$(TARGET)/lint' --locked --quiet -- -D warnings
	done
	$(call heading,Crates: known holes$(comma) licenses$(comma) versions$(comma) sources)
	scripts/crates

docs: ## tables and outputs in README.md and docs/, as their commands print them now
	@scripts/docs

results: ## every figure of README.md and docs/ beside what its command prints now; ONLY=PATTERN: those whose place or command matches
	@scripts/need results
	scripts/docs --results '$(ONLY)'

doc: ## the documentation of every crate
	@RUSTDOCFLAGS='-D warnings' cargo doc --workspace --locked --no-deps
	folder=$$(cd '$(TARGET)' && pwd)
	echo "Start at $$folder/doc/thinair_rohc/index.html"
