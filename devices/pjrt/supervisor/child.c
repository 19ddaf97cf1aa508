#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "devices/pjrt/supervisor/internal.h"

/* The process of a device host: start, output, end. */

/* How long a control message may wait for space in the socket: a stopped host reads nothing. */
#define SEND_TIMEOUT_S 10
/* How long a host may take to end when the server stops: it unpins memory. */
#define END_TIMEOUT_MS 1000

/* Between fork and exec: async-signal-safe calls only. */
static void run_child(const pjrt_supervisor *s, int control, int output)
{
    /* Away from the numbers that dup2() assigns below. */
    control = fcntl(control, F_DUPFD, 10);
    output = fcntl(output, F_DUPFD, 10);
    int nothing = open("/dev/null", O_RDONLY);
    if (control < 0 || output < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0 ||
        dup2(control, PJRT_HOST_CONTROL_FD) < 0)
        _exit(127);
    if (nothing >= 0)
        dup2(nothing, 0);
    /* No other descriptor of the server: a listening socket would stay open here. */
    syscall(SYS_close_range, PJRT_HOST_CONTROL_FD + 1, ~0U, 0);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execl(s->host_program, "penstock", "device-host", s->options.plugin, (char *)NULL);
    static const char failed[] = "cannot execute the program of the device host\n";
    ssize_t ignored = write(2, failed, sizeof failed - 1);
    (void)ignored;
    _exit(127);
}

status pjrt_child_spawn(pjrt_supervisor *s)
{
    int pair[2], output[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return status_fail(STATUS_IO, "socketpair: %m");
    if (pipe2(output, O_CLOEXEC) != 0) {
        close(pair[0]);
        close(pair[1]);
        return status_fail(STATUS_IO, "pipe: %m");
    }
    fcntl(output[0], F_SETFL, O_NONBLOCK);
    struct timeval send_timeout = {.tv_sec = SEND_TIMEOUT_S};
    setsockopt(pair[0], SOL_SOCKET, SO_SNDTIMEO, &send_timeout, sizeof send_timeout);
    pid_t child = fork();
    if (child == 0)
        run_child(s, pair[1], output[1]);
    close(pair[1]);
    close(output[1]);
    int pid_fd = child > 0 ? (int)syscall(SYS_pidfd_open, child, 0) : -1;
    if (pid_fd < 0) {
        status result = status_fail(STATUS_IO, "%s: %m", child < 0 ? "fork" : "pidfd_open");
        if (child > 0) {
            kill(child, SIGKILL);
            waitpid(child, NULL, 0);
        }
        close(pair[0]);
        close(output[0]);
        return result;
    }
    pthread_mutex_lock(&s->lock);
    s->child = child;
    s->pid_fd = pid_fd;
    s->socket = pair[0];
    s->output_fd = output[0];
    pthread_mutex_unlock(&s->lock);
    return STATUS_OK;
}

void pjrt_child_read_output(pjrt_supervisor *s)
{
    char text[4096];
    ssize_t bytes;
    while (s->output_fd >= 0 && (bytes = read(s->output_fd, text, sizeof text)) != 0) {
        if (bytes > 0)
            pjrt_output_feed(&s->output, text, (size_t)bytes);
        else if (errno != EINTR)
            return; /* all that was printed so far */
    }
    /* End of file: the host ended, or the plugin closed its standard error. */
    pjrt_output_flush(&s->output);
    if (s->output_fd >= 0)
        close(s->output_fd);
    s->output_fd = -1;
}

void pjrt_child_ask_to_end(pjrt_supervisor *s)
{
    struct pollfd child = {s->pid_fd, POLLIN, 0};
    shutdown(s->socket, SHUT_RDWR);
    poll(&child, 1, END_TIMEOUT_MS);
}

void pjrt_child_reap(pjrt_supervisor *s, char *how, size_t how_bytes)
{
    kill(s->child, SIGKILL);
    int ended = 0;
    while (waitpid(s->child, &ended, 0) < 0 && errno == EINTR)
        continue;
    if (WIFSIGNALED(ended))
        snprintf(how, how_bytes, "ended by signal %d (%s)", WTERMSIG(ended),
                 strsignal(WTERMSIG(ended)));
    else
        snprintf(how, how_bytes, "exited with status %d", WEXITSTATUS(ended));
    pjrt_child_read_output(s);
    pjrt_output_flush(&s->output);
    pthread_mutex_lock(&s->lock);
    while (s->executing > 0) /* short: they poll pid_fd, which is readable now */
        pthread_cond_wait(&s->changed, &s->lock);
    close(s->pid_fd);
    close(s->socket);
    if (s->output_fd >= 0)
        close(s->output_fd);
    s->pid_fd = s->socket = s->output_fd = -1;
    s->child = 0;
    pthread_mutex_unlock(&s->lock);
}
