#include "base/mailbox.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

typedef struct message {
    mailbox_node node; /* first, so that a node is its message */
    int sender, number;
} message;

Test(mailbox, keeps_order_and_says_when_it_was_empty)
{
    mailbox box;
    message m[3] = {0};
    mailbox_init(&box);
    cr_assert(mailbox_is_empty(&box));
    cr_assert_null(mailbox_take_all(&box));
    for (int i = 0; i < 3; i++) {
        m[i].number = i;
        cr_assert_eq(mailbox_post(&box, &m[i].node), i == 0);
    }
    cr_assert_not(mailbox_is_empty(&box));
    mailbox_node *node = mailbox_take_all(&box);
    for (int i = 0; i < 3; i++, node = node->next)
        cr_assert_eq(((message *)node)->number, i);
    cr_assert_null(node);
    cr_assert(mailbox_is_empty(&box));
    cr_assert(mailbox_post(&box, &m[0].node));
}

enum { SENDERS = 4, MESSAGES = 20000 };

typedef struct sender {
    mailbox *box;
    message *messages;
    int wakes; /* posts that found the box empty */
} sender;

static void *send_all(void *argument)
{
    sender *s = argument;
    for (int i = 0; i < MESSAGES; i++)
        s->wakes += mailbox_post(s->box, &s->messages[i].node);
    return NULL;
}

Test(mailbox, loses_nothing_between_threads_and_keeps_each_senders_order)
{
    mailbox box;
    pthread_t threads[SENDERS];
    sender senders[SENDERS];
    mailbox_init(&box);
    for (int i = 0; i < SENDERS; i++) {
        senders[i] = (sender){&box, calloc(MESSAGES, sizeof(message)), 0};
        for (int j = 0; j < MESSAGES; j++)
            senders[i].messages[j] = (message){.sender = i, .number = j};
    }
    for (int i = 0; i < SENDERS; i++)
        pthread_create(&threads[i], NULL, send_all, &senders[i]);
    int next[SENDERS] = {0}, total = 0, batches = 0;
    while (total < SENDERS * MESSAGES) {
        mailbox_node *node = mailbox_take_all(&box);
        batches += node != NULL;
        if (node == NULL)
            sched_yield();
        for (; node != NULL; total++) {
            message *m = (message *)node;
            node = node->next;
            cr_assert_eq(m->number, next[m->sender]++);
        }
    }
    int wakes = 0;
    for (int i = 0; i < SENDERS; i++) {
        pthread_join(threads[i], NULL);
        wakes += senders[i].wakes;
        free(senders[i].messages);
    }
    cr_assert_eq(wakes, batches, "each batch has exactly one post that found the box empty");
}
