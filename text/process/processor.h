#ifndef TEXT_PROCESS_PROCESSOR_H
#define TEXT_PROCESS_PROCESSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Post-processing: special tokens around one or two sequences, and spans without the spaces of
 * byte-level tokens. BertProcessing and RobertaProcessing are templates too. */

#define TEMPLATE_PARTS_MAX 64
#define TEMPLATE_IDS_MAX 256

/* A sequence, or special tokens. */
typedef struct template_part {
    bool is_sequence;
    uint8_t sequence;            /* 0, 1 */
    uint16_t first_id, id_count; /* in ids */
    uint32_t type_id;
} template_part;

typedef struct template
{
    template_part parts[TEMPLATE_PARTS_MAX];
    size_t part_count;
    size_t special_count; /* ids that it adds */
}
template;

typedef struct processor {
    bool has_templates; /* without: sequences one after the other, type ids 0 and 1 */
    template single, pair;
    uint32_t ids[TEMPLATE_IDS_MAX]; /* of all templates' special tokens */
    size_t id_count;
    bool trims_spans; /* spaces at the ends of byte-level tokens are not part of their spans */
    bool adds_prefix_space; /* then one space at the front is not counted */
} processor;

#endif
