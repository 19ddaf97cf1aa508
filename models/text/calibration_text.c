#include "models/text/calibration_text.h"

#include <string.h>

#define TOKENS_MAX 64 /* of a sample */

/* Short and long ones, questions, numbers, names, code, lists: what search, chat and documents
 * have. */
static const char *const texts[] = {
    "The harbour was quiet that morning, and only two boats had left before the fog came in.",
    "How do I reset the password of my account?",
    "Revenue grew by 14.2% to $3.8 billion in the second quarter, while costs fell slightly.",
    "A man in a red jacket is riding a bicycle down a steep, muddy hill.",
    "Mix the flour with 250 ml of milk, two eggs and a pinch of salt, then let the dough rest for "
    "half an hour in a cool place before you roll it out thinly.",
    "ok",
    "Error 404: the file /var/log/app/server.log was not found on host db-7.",
    "Dr. Elena Marquez of the University of Leeds presented new results on coral reefs in 2019.",
    "Is it cheaper to fly from Oslo to Lisbon on a Tuesday than on a weekend?",
    "The patient reports mild headaches and dizziness after taking the medicine for three days; "
    "blood pressure and heart rate were normal at every visit.",
    "for (int i = 0; i < count; i++) total += prices[i] * (1 + tax);",
    "Three children are playing football in the park.",
    "The contract ends on 31 December unless either party gives written notice at least sixty "
    "days before that date, in which case the deposit is returned within two weeks.",
    "best cheap laptop for students",
    "She had never seen snow before, so she stood at the window and laughed.",
    "What is the difference between weather and climate?",
    "Water boils at a lower temperature on a mountain because the pressure of the air is lower.",
    "A cat is sleeping on the sofa next to a small dog.",
    "The minister said on Monday that the bridge, which carries forty thousand cars a day, will be "
    "closed until engineers have inspected every one of its cables.",
    "Please send me the invoice again, the attachment could not be opened. Thank you!",
    "In chess, the bishop moves along diagonals and the rook along rows and columns.",
    "Great phone, terrible battery :( would not buy again",
    "Stars like our Sun burn hydrogen for about ten billion years; heavier ones live much shorter "
    "lives and end in explosions that scatter the elements of which planets are made.",
    "Turn left at the church, walk past the bakery, and the museum is on your right.",
};

static status add(const model_text *t, tokenizer_scratch *scratch, const char *text, arena *memory,
                  device_samples *out)
{
    const model_text_input in = {.text = text,
                                 .text_bytes = strlen(text),
                                 .truncates = true,
                                 .tokens_max =
                                     t->tokens_max < TOKENS_MAX ? t->tokens_max : TOKENS_MAX};
    tokenizer_tokens tokens;
    status s = model_text_encode(t, scratch, &in, &tokens);
    if (s)
        return s == STATUS_OUT_OF_MEMORY ? s : STATUS_OK;
    int64_t *ids = arena_allocate(memory, tokens.count * sizeof *ids);
    if (ids == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for samples");
    for (size_t i = 0; i < tokens.count; i++) {
        ids[i] = tokens.ids[i];
        out->hash = (out->hash ^ (uint64_t)ids[i]) * UINT64_C(1099511628211); /* FNV-1a */
    }
    out->samples[out->count++] = (device_sample){.ids = ids, .length = (int64_t)tokens.count};
    return STATUS_OK;
}

status model_text_samples(const model_text *t, arena *memory, device_samples *out)
{
    _Static_assert(sizeof texts / sizeof *texts <= DEVICE_SAMPLES_MAX, "more than fit");
    tokenizer_scratch *scratch = tokenizer_scratch_create();
    if (scratch == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for samples");
    *out = (device_samples){.hash = UINT64_C(14695981039346656037)};
    status s = STATUS_OK;
    for (size_t i = 0; i < sizeof texts / sizeof *texts && !s; i++)
        s = add(t, scratch, texts[i], memory, out);
    tokenizer_scratch_destroy(scratch);
    return s;
}
