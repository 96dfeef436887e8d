/* tools/generate.h: what the files of heddle generate share. */
#ifndef HEDDLE_TOOLS_GENERATE_H
#define HEDDLE_TOOLS_GENERATE_H

#include "session.h"

/* The tokens of a file; *out is freed by the caller. DONE, or it has said why not. */
int generate_read_tokens(const char *path, int64_t **out, size_t *n);

/* "stop", "length" or "callback" */
const char *generate_end(const heddle_generated *done);

/* generate_texts.c: the texts of all files, which share runs. */
int generate_texts(const options *o, heddle_generator *g, const heddle_generation *how);

#endif
