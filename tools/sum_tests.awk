# Sums what ctest printed (first file: its verdict on each program) and its log (second file: what the programs printed).
# In a cmocka program each test begins with [ RUN ] and ends with [ OK ] or [ SKIPPED ]; what has begun and ended neither
# way has failed. A program that ends badly without a failed test counts as one failure (a crash, a time limit, a leak);
# one that is no cmocka program counts as one test.

FILENAME == ARGV[1] {
    if ($0 ~ /^ *[0-9]+\/[0-9]+ Test +#[0-9]+: /) {
        program = $0
        sub(/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: /, "", program)
        sub(/ .*/, "", program)
        verdict[program] = / Passed +[0-9.]+ sec$/ ? "passed" : /\*\*\*Skipped/ ? "skipped" : "failed"
    }
    next
}

/^[0-9]+\/[0-9]+ Test: /   { program = $3; reason = ""; in_list = 0; next }
/\[ RUN      \] /          { started[program]++; reason = ""; next }
/\[       OK \] /          { passed[program]++; next }
/\[  PASSED  \] [0-9]+ t/  { in_list = 1; next } # cmocka's own summary, up to the next group
/\[==========\] Running/   { in_list = 0; next }
/\[  SKIPPED \] /          {
    if (!in_list) {
        skipped[program]++
        name = $0
        sub(/.*\[  SKIPPED \] /, "", name)
        skips[++num_skips] = program ": " name (reason ? ":" reason : " (no reason given)")
    }
    next
}
{ if (length(reason) < 300) reason = reason " " $0 }

END {
    for (program in verdict) {
        failed = started[program] - passed[program] - skipped[program]
        if (verdict[program] == "failed" && failed == 0) failed = 1
        if (started[program] == 0 && verdict[program] == "passed") passed[program] = 1
        if (started[program] == 0 && verdict[program] == "skipped") {
            skipped[program] = 1
            skips[++num_skips] = program
        }
        if (failed > 0) failures[++num_failures] = program ": " failed " failed"
        all_passed += passed[program]; all_failed += failed; all_skipped += skipped[program]
    }
    for (i = 1; i <= num_skips; i++) print "skipped: " skips[i]
    for (i = 1; i <= num_failures; i++) print "failed: " failures[i]
    if (all_passed + all_failed == 0) print "no test ran"
    printf "%d passed, %d failed, %d skipped\n", all_passed, all_failed, all_skipped
    exit all_failed > 0 || all_passed == 0
}
