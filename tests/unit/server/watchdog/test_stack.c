#include <criterion/criterion.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "server/watchdog/stack.h"

static sem_t is_there;
static int go_on[2]; /* a pipe */

static void *wait_here(void *context)
{
    sigset_t all;
    sigfillset(&all);
    if (context != NULL)
        pthread_sigmask(SIG_BLOCK, &all, NULL);
    char byte;
    sem_post(&is_there);
    cr_assert_eq(read(go_on[0], &byte, 1), 1);
    return NULL;
}

static pthread_t start(bool is_deaf)
{
    pthread_t thread;
    stack_install();
    sem_init(&is_there, 0, 0);
    cr_assert_eq(pipe(go_on), 0);
    cr_assert_eq(pthread_create(&thread, NULL, wait_here, is_deaf ? &thread : NULL), 0);
    sem_wait(&is_there);
    return thread;
}

Test(stack, another_thread_is_described, .timeout = 300)
{
    char text[2000];
    pthread_t thread = start(false);
    bool has_name = false;
    while (!has_name) /* it may be on its way into the wait, or not run for long */
        has_name = stack_describe(thread, text, sizeof text) && strstr(text, "read+0x") != NULL;
    cr_assert(strstr(text, " < ") != NULL, "%s", text);
    char small[20];
    while (!stack_describe(thread, small, sizeof small))
        ;
    cr_assert_lt(strlen(small), sizeof small);
    cr_assert_eq(write(go_on[1], "x", 1), 1);
    pthread_join(thread, NULL);
}

Test(stack, a_thread_that_takes_no_signals_is_not_waited_for, .timeout = 300)
{
    char text[2000];
    pthread_t thread = start(true);
    cr_assert_not(stack_describe(thread, text, sizeof text));
    cr_assert(stack_describe(pthread_self(), text, sizeof text), "and the next one is asked");
    cr_assert_eq(write(go_on[1], "x", 1), 1);
    pthread_join(thread, NULL);
}
