# Verbs over CMake. Each calls the script that does the work, so make itself is never needed.
.DEFAULT_GOAL := help
.PHONY: help setup build demo test lint format asan ubsan fuzz bench golden check clean

help: ## this list
	@awk -F ': ## ' '/^[a-z]+: ##/ { printf "make %-8s %s\n", $$1, $$2 }' Makefile

setup: ## install what is missing (Debian packages, plugin, text), also what tests and lint need
	tools/setup --tests --dev

build: ## build build/ctitan and the tests
	tools/build

demo: ## set up, build, and the main job: tokenizer, training, resuming, a model that writes
	tools/demo

test: ## set up, build, run all tests
	tools/test

lint: ## layers, layout, clang-tidy
	tools/lint

format: ## lay out the source with clang-format
	git ls-files -- 'src/*.c' 'src/*.h' 'src/*.cc' 'tests/*.c' 'tests/*.h' 'benchmarks/*.c' | xargs clang-format-14 -i

asan: ## fast tests under the address and undefined-behaviour sanitizers
	tools/test --config asan --fast

ubsan: ## all tests under the undefined-behaviour sanitizer
	tools/test --config ubsan

fuzz: ## run every fuzz target for a short while (clang)
	tools/fuzz

bench: ## tokens per second against JAX (benchmarks/step)
	tools/build ctitan
	python3 benchmarks/step/run.py

golden: ## only the comparisons with PyTorch's values
	tools/test golden

check: ## what CI runs
	.ci/run

clean: ## remove all builds; .deps and outputs stay
	rm -rf build build-clang build-asan build-ubsan build-fuzz
