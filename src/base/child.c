/* A fork, a pipe for the reply, an anonymous file for what the child prints on stderr. */
#include "base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"

enum { LAST_PRINTED = 2000 };

/* What stands before the reply in the pipe. */
typedef struct {
    int32_t has_status, code;
    uint64_t message_bytes; /* then the message, then the reply */
} reply_header;

static void run_child(ct_child_work *work, void *context, int pipe_end, int log)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a parent that is killed leaves nobody behind */
    dup2(log, STDERR_FILENO);
    ct_str reply;
    ct_str_init(&reply);
    ct_status *status = work(context, &reply);
    const char *message = status ? ct_status_message(status) : "";
    reply_header header = {.has_status = status != NULL,
                           .code = status ? (int32_t)ct_status_code(status) : 0,
                           .message_bytes = strlen(message)};
    ct_status *sent = ct_file_write_all(pipe_end, "pipe", &header, sizeof(header));
    if (!sent) sent = ct_file_write_all(pipe_end, "pipe", message, header.message_bytes);
    if (!sent) sent = ct_file_write_all(pipe_end, "pipe", reply.data, reply.length);
    fflush(stdout);
    fflush(stderr);
    _exit(sent ? 1 : 0); /* no handlers of the parent's: its buffers and files are not the child's */
}

/* All that the child sends, until it closes the pipe. */
static void collect(int pipe_end, const ct_child_opts *opts, double start, ct_str *out)
{
    struct pollfd waiting = {.fd = pipe_end, .events = POLLIN};
    for (double next = start + 1;;) {
        int ready = poll(&waiting, 1, 200);
        double now = ct_clock_seconds();
        if (opts && opts->tick && now >= next) {
            opts->tick(opts->tick_context, now - start);
            next = now + 1;
        }
        if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
        char bytes[65536];
        ssize_t count = read(pipe_end, bytes, sizeof(bytes));
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return;
        ct_str_append_n(out, bytes, (size_t)count);
    }
}

static ct_status *read_reply(const ct_str *sent, int code, const char *printed, ct_str *reply)
{
    reply_header header = {0};
    if (sent->length >= sizeof(header)) memcpy(&header, sent->data, sizeof(header));
    if (code != 0 || sent->length < sizeof(header) || header.message_bytes > sent->length - sizeof(header)) {
        size_t length = strlen(printed), skipped = length > LAST_PRINTED ? length - LAST_PRINTED : 0;
        bool by_signal = WIFSIGNALED(code);
        int number = by_signal ? WTERMSIG(code) : WEXITSTATUS(code);
        return ct_error(CT_CODE_INTERNAL, "the process that did the work ended with %s %d%s%s%s%s",
                        by_signal ? "signal" : "exit code", number, by_signal ? ", " : "",
                        by_signal ? strsignal(number) : "", printed[0] ? "; the last that it printed:\n" : "",
                        printed + skipped);
    }
    const char *message = sent->data + sizeof(header);
    ct_str_append_n(reply, message + header.message_bytes, sent->length - sizeof(header) - header.message_bytes);
    if (!header.has_status) return NULL;
    return ct_error((ct_code)header.code, "%.*s", (int)header.message_bytes, message);
}

/* The text of an anonymous file, heap. */
static char *read_all(int file)
{
    off_t size = lseek(file, 0, SEEK_END);
    char *text = ct_alloc_zeroed((size_t)CT_MAX(size, 0) + 1, 1);
    ssize_t count = size > 0 ? pread(file, text, (size_t)size, 0) : 0;
    text[CT_MAX(count, 0)] = 0;
    return text;
}

ct_status *ct_child_run(ct_child_work *work, void *context, const ct_child_opts *opts, ct_str *reply,
                        ct_child_usage *out_usage)
{
    if (out_usage) *out_usage = (ct_child_usage){0};
    int ends[2] = {-1, -1}, log = memfd_create("ct_child", MFD_CLOEXEC);
    if (log < 0) return ct_errno_error("making a file in memory");
    if (pipe2(ends, O_CLOEXEC)) {
        ct_status *failed = ct_errno_error("making a pipe");
        close(log);
        return failed;
    }
    fflush(stdout); /* or the child would print it again */
    fflush(stderr);
    double start = ct_clock_seconds();
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        run_child(work, context, ends[1], log);
    }
    ct_status *status = child < 0 ? ct_errno_error("starting a process") : NULL;
    close(ends[1]);
    if (!status) {
        ct_str sent;
        ct_str_init(&sent);
        collect(ends[0], opts, start, &sent);
        struct rusage usage = {0};
        int code = 0;
        while (wait4(child, &code, 0, &usage) < 0 && errno == EINTR) {
        }
        char *printed = read_all(log);
        status = read_reply(&sent, code, printed, reply);
        if (code == 0 && printed[0]) fputs(printed, stderr);
        free(printed);
        ct_str_deinit(&sent);
        if (out_usage)
            *out_usage = (ct_child_usage){
                .seconds = ct_clock_seconds() - start,
                .cpu_seconds = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                               1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec),
                .peak_bytes = usage.ru_maxrss * 1024,
            };
    }
    close(ends[0]);
    close(log);
    return status;
}
