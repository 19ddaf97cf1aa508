#ifndef TEXT_LOAD_SCORE_H
#define TEXT_LOAD_SCORE_H

/* The number that the `tokenizers` library reads where the correctly rounded one is `exact`: its
 * JSON parser (serde_json, f64_from_parts) divides the digits by a power of ten, which is wrong in
 * the last bit now and then. Ties between ways to cut a word are decided by that bit. */
double score_as_read(double exact);

#endif
