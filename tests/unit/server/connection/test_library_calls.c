#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/connection/library_calls.h"
#include "server/http1/overrides/input_buffer.h"

static size_t asked_bytes, read_bytes;

static bool end_program(size_t bytes)
{
    _exit(bytes >= SIZE_MAX / 4 ? 7 : 8);
}

static bool refuse(size_t bytes)
{
    (void)bytes;
    return false;
}

static size_t read_at_most(size_t bytes)
{
    asked_bytes = bytes;
    return 20000;
}

static bool is_short(void)
{
    return false;
}

static void on_read(h2o_socket_t *socket, const char *error)
{
    cr_assert_null(error);
    read_bytes = socket->input->size;
    h2o_socket_read_stop(socket);
}

static void allocate_by_library(void)
{
    h2o_mem_pool_t pool;
    h2o_mem_init_pool(&pool);
    h2o_mem_alloc_pool(&pool, SIZE_MAX / 4);
}

#ifndef __SANITIZE_ADDRESS__
Test(library_calls, the_hook_is_asked_when_the_library_gets_no_memory, .exit_code = 7)
{
    library_calls_install(&(library_calls_hooks){end_program, read_at_most});
    allocate_by_library();
}

Test(library_calls, the_library_ends_the_process_when_nothing_can_be_done, .signal = SIGABRT)
{
    library_calls_install(&(library_calls_hooks){refuse, read_at_most});
    allocate_by_library();
}

Test(library_calls, others_get_nothing_and_go_on)
{
    library_calls_install(&(library_calls_hooks){end_program, read_at_most});
    void *volatile p = malloc(SIZE_MAX / 4);
    cr_expect_null(p);
}
#endif

Test(library_calls, the_library_reads_as_much_as_the_hook_says)
{
    int ends[2];
    static char data[100000];
    library_calls_install(&(library_calls_hooks){refuse, read_at_most});
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    cr_assert_eq(write(ends[1], data, sizeof data), (ssize_t)sizeof data);
    input_buffer_install(&(input_buffer_hooks){.is_short = is_short});
    h2o_loop_t *loop = h2o_evloop_create();
    h2o_socket_t *socket = h2o_evloop_socket_create(loop, ends[0], 0);
    h2o_buffer_reserve(&socket->input, 50000);
    h2o_socket_read_start(socket, on_read);
    while (read_bytes == 0)
        h2o_evloop_run(loop, 1000);
    cr_expect_eq(read_bytes, 20000, "%zu", read_bytes);
    cr_expect_geq(asked_bytes, 50000);
    cr_expect_eq(read(ends[0], data, sizeof data), 80000, "a read of ours is not cut");
    close(ends[1]);
}
