#ifndef MODELS_LOADING_FOREIGN_FILES_H
#define MODELS_LOADING_FOREIGN_FILES_H

/* Models in formats that this server does not take: what they are, and how to export them. */

/* "; it has a TensorFlow SavedModel: ...", or "". `path`: a folder, or a file itself. Looks at
 * names only. Static. */
const char *foreign_files_advice(const char *path);

#endif
