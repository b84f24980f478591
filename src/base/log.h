/* The console log, in TorchTitan's form: "[titan] 2025-10-14 23:10:44,306 - root - INFO - message", on stderr as
 * Python's logging does, so that stdout holds only what a command was asked to print. Thread-safe.
 */
#ifndef CT_BASE_LOG_H
#define CT_BASE_LOG_H

#include <stdbool.h>

#include "base/macros.h"

typedef enum ct_log_level { CT_LOG_DEBUG, CT_LOG_INFO, CT_LOG_WARNING, CT_LOG_ERROR } ct_log_level;

void ct_log_set_level(ct_log_level level); /* default INFO */
void ct_log(ct_log_level level, const char *format, ...) CT_PRINTF(2, 3);

/* A line that stays below the log, for progress: replaced by the next one, taken away by "", and never mixed with log
 * lines. Cut to the terminal's width; nothing at all is shown when stderr is not a terminal. ASCII only. */
void ct_log_status(const char *format, ...) CT_PRINTF(1, 2);
bool ct_log_has_status(void); /* is it shown: stderr is a terminal */

#define ct_info(...)    ct_log(CT_LOG_INFO, __VA_ARGS__)
#define ct_warning(...) ct_log(CT_LOG_WARNING, __VA_ARGS__)

#endif
