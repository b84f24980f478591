# cmake -DSOURCE=... -DOUTPUT=... -P commit.cmake: writes the header CT_COMMIT, the commit that is built, with
# "-modified" behind it when tracked files differ from it; "" outside a checkout. Runs at every build, and leaves the file
# alone unless it changes.
get_filename_component(parent ${SOURCE} DIRECTORY)
set(ENV{GIT_CEILING_DIRECTORIES} ${parent}) # a checkout around the sources is another project's
execute_process(COMMAND git -C ${SOURCE} describe --always --abbrev=40 --match= --dirty=-modified
                OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  set(commit "")
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#define CT_COMMIT \"${commit}\"\n")
