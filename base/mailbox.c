#include "base/mailbox.h"

#include <stddef.h>

void mailbox_init(mailbox *box)
{
    atomic_init(&box->newest, NULL);
}

bool mailbox_post(mailbox *box, mailbox_node *node)
{
    mailbox_node *newest = atomic_load_explicit(&box->newest, memory_order_relaxed);
    do
        node->next = newest;
    while (!atomic_compare_exchange_weak_explicit(&box->newest, &newest, node, memory_order_acq_rel,
                                                  memory_order_relaxed));
    return newest == NULL;
}

mailbox_node *mailbox_take_all(mailbox *box)
{
    mailbox_node *newest = atomic_exchange_explicit(&box->newest, NULL, memory_order_acq_rel);
    mailbox_node *oldest = NULL;
    while (newest != NULL) {
        mailbox_node *older = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = older;
    }
    return oldest;
}

bool mailbox_is_empty(const mailbox *box)
{
    return atomic_load_explicit(&box->newest, memory_order_acquire) == NULL;
}
