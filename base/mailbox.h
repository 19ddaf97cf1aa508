#ifndef BASE_MAILBOX_H
#define BASE_MAILBOX_H

#include <stdatomic.h>
#include <stdbool.h>

/* A lock-free queue of messages (MPSC): any thread posts, one thread at a time takes all. Nodes are
 * embedded in the messages, so posting allocates nothing and cannot fail. */
typedef struct mailbox_node {
    struct mailbox_node *next;
} mailbox_node;

typedef struct mailbox {
    _Atomic(mailbox_node *) newest;
} mailbox;

void mailbox_init(mailbox *box);

/* Passes `node` to the mailbox until it is taken. True: the mailbox was empty, and the caller wakes
 * the taking thread. */
bool mailbox_post(mailbox *box, mailbox_node *node);

/* Empties the mailbox; returns the oldest message, linked by `next` to newer ones, or NULL. */
mailbox_node *mailbox_take_all(mailbox *box);

bool mailbox_is_empty(const mailbox *box);

#endif
