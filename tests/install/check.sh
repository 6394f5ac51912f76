#!/usr/bin/env bash
# check.sh WHEEL BUILD_DIR PYTHON
#
# What users do: install the wheel in a fresh environment and the library under a prefix; then find
# either with CMake and with pkg-config, build tests/install and examples/ against it, and run them.
# An example whose folder holds a file `.gpu` needs an accelerator and is only named. PYTHON is one
# that has the photographs of scikit-learn, for the example that works on them.
set -euo pipefail
wheel=$(realpath "$1") build=$(realpath "$2")
python=$(realpath -s "$3") # a link within its environment
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$root/build/install
passed=0
arguments=() # of the programs built

run() { # run TITLE COMMAND...
  local log
  log=$work/log.txt
  if ! (cd "$work" && "${@:2}") >"$log" 2>&1; then
    printf 'FAILED: %s\n' "$1"
    cat "$log"
    exit 1
  fi
  passed=$((passed + 1))
  printf '  ok: %s\n' "$1"
}

held_is_flat() { # held_is_flat CSV: behind a batch after the warm-up no more than behind its end
  awk -F, -v warm_up=10 '
    NR > 1 && $1 == warm_up { level = $2 }
    NR > 1 && $1 > warm_up && $2 > level { print "held more than " level ": " $0; grown = 1 }
    END { if (NR < 1001) print NR " lines"; exit NR < 1001 || level == 0 || grown }' "$1"
}

execute() { # execute PROGRAM: with its arguments, the last of them being where it tells what it held
  [[ ${#arguments[@]} -eq 0 ]] || rm -f "${arguments[-1]}"
  "$1" "${arguments[@]}" || return 1
  [[ ${#arguments[@]} -eq 0 ]] || held_is_flat "${arguments[-1]}"
}

by_cmake() { # by_cmake PREFIX FOLDER: find_package(isthmus), then run every program built
  local out program
  out=$work/cmake
  rm -rf "$out"
  cmake -S "$2" -B "$out" -G Ninja -DCMAKE_PREFIX_PATH="$1" -DCMAKE_BUILD_TYPE=Release &&
    cmake --build "$out" || return 1
  while read -r program; do
    execute "$program" || return 1
  done < <(find "$out" -maxdepth 1 -type f -executable)
}

by_pkg_config() { # by_pkg_config LIBDIR SOURCE
  local compiler=(cc -std=c99) flags
  [[ $2 == *.cpp ]] && compiler=(c++ -std=c++20)
  flags=$(PKG_CONFIG_PATH=$1/pkgconfig pkg-config --cflags --libs isthmus) || return 1
  # shellcheck disable=SC2086  # flags are words
  "${compiler[@]}" "$2" -o "$work/program" $flags "-Wl,-rpath,$1" -pthread &&
    execute "$work/program"
}

# unchanged_by_subdirectory: add_subdirectory leaves the build type, the install rules and the
# standard of the project that contains this one alone
unchanged_by_subdirectory() {
  local folder=$work/subdirectory
  rm -rf "$folder"
  mkdir -p "$folder"
  # shellcheck disable=SC2016  # CMake expands the variable
  printf '%s\n' 'cmake_minimum_required(VERSION 3.25)' 'project(parent LANGUAGES C CXX)' \
    "add_subdirectory($root isthmus)" 'message(STATUS "standard: <${CMAKE_CXX_STANDARD}>")' \
    >"$folder/CMakeLists.txt"
  cmake -S "$folder" -B "$folder/build" >"$folder/log" || return 1
  grep -q 'standard: <>' "$folder/log" &&
    grep -q '^CMAKE_BUILD_TYPE:STRING=$' "$folder/build/CMakeCache.txt" &&
    [[ ! -e $folder/build/isthmus/isthmusConfig.cmake ]]
}

# old_standard_is_refused LIBDIR: in C++17 the headers stop with one message, not hundreds
old_standard_is_refused() {
  local flags log=$work/old_standard
  flags=$(PKG_CONFIG_PATH=$1/pkgconfig pkg-config --cflags isthmus) || return 1
  # shellcheck disable=SC2086  # flags are words
  c++ -std=c++17 -fsyntax-only $flags "$root/tests/install/user.cpp" 2>"$log" && return 1
  grep -q "need C++20" "$log" && [[ $(grep -c 'error' "$log") -le 3 ]]
}

build_all() { # build_all WHERE PREFIX LIBDIR
  local folder source
  for folder in "$root"/tests/install "$root"/examples/*/; do
    [[ -d $folder ]] || continue
    if [[ -e $folder/.gpu ]]; then
      printf '  needs an accelerator, not run: %s\n' "$(basename "$folder")"
      continue
    fi
    arguments=()
    [[ ! -e $folder/photographs.py ]] || arguments=("$work/photographs.raw" "$work/held.csv")
    [[ ! -e $folder/CMakeLists.txt ]] ||
      run "$1: $(basename "$folder") by find_package" by_cmake "$2" "$folder"
    for source in "$folder"/*.c "$folder"/*.cpp; do
      [[ ! -e $source ]] || run "$1: $(basename "$folder")/${source##*/} by pkg-config" \
        by_pkg_config "$3" "$source"
    done
  done
}

python_examples() { # before.py is the same program in a peer's words, and none of the wheel's
  local script
  for script in "$root"/examples/*/*.py; do
    [[ -e $script && ! -e $(dirname "$script")/.gpu && $script != */before.py &&
      $script != */photographs.py ]] || continue
    run "wheel: ${script#"$root"/}" "$work/venv/bin/python" "$script"
  done
}

rm -rf "$work"
mkdir -p "$work"
run "fresh environment" python3 -m venv "$work/venv"
run "install ${wheel##*/}" "$work/venv/bin/python" -m pip install "$wheel"
run "import isthmus" "$work/venv/bin/python" -c 'import isthmus; print(isthmus.__version__)'
run "isthmus info" "$work/venv/bin/isthmus" info
package=$(cd "$work" && venv/bin/python -c 'import isthmus; print(isthmus.__path__[0])')
run "no symbolic links, one library" test -f "$package/lib/libisthmus.so.0" -a ! -L \
  "$package/lib/libisthmus.so.0"
run "exported symbols of the wheel" python3 "$root/tests/abi/check_symbols.py" \
  "$package/lib/libisthmus.so.0" --names
run "photographs" "$python" "$root/examples/cpp-array/photographs.py" "$work/photographs.raw"
build_all wheel "$package" "$package/lib"
run "install its extra sycl" "$work/venv/bin/python" -m pip install "${wheel}[sycl]"
python_examples

run "add_subdirectory" unchanged_by_subdirectory
run "cmake --install" cmake --install "$build" --prefix "$work/prefix"
mv "$work/prefix" "$work/moved" # found by its own place, not by a recorded one
libdir=$(dirname "$(find "$work/moved" -name libisthmus.so)")
run "an old standard is refused" old_standard_is_refused "$libdir"
build_all prefix "$work/moved" "$libdir"
printf '%d passed, 0 failed\n' "$passed"
