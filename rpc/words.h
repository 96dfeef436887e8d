/* rpc/words.h: what the programs that the tool starts have in common: words NAME=VALUE, which the tool has read and checked, and
 * files for many connections. Header only. */
#ifndef HEDDLE_RPC_WORDS_H
#define HEDDLE_RPC_WORDS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { WRONG_WORDS = 2 }; /* the status of such a program */

typedef struct words {
  char **data;
  int n;
} words;

static inline const char *words_find(const words *w, const char *name) {
  const size_t n = strlen(name);
  for (int i = 0; i < w->n; i++)
    if (strncmp(w->data[i], name, n) == 0 && w->data[i][n] == '=') return w->data[i] + n + 1;
  return NULL;
}

static inline uint64_t words_number(const words *w, const char *name, uint64_t usual) {
  const char *found = words_find(w, name);
  return found != NULL ? strtoull(found, NULL, 10) : usual;
}

/* There may be thousands of connections, and the usual limit is below that. */
static inline void words_allow_files(void) {
  enum { WANTED = 4096 };
  struct rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= WANTED) return;
  files.rlim_cur = files.rlim_max < WANTED ? files.rlim_max : WANTED;
  (void)setrlimit(RLIMIT_NOFILE, &files);
}

#endif
