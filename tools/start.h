/* tools/start.h: commands that are programs of their own, beside the tool: their words are NAME=VALUE. */
#ifndef HEDDLE_TOOLS_START_H
#define HEDDLE_TOOLS_START_H

#include <stdbool.h>
#include <stdint.h>

enum { START_WORDS = 24, START_ROOM = 4200, START_MOST_KEY = 1000 };

typedef struct start_line {
  char room[START_WORDS][START_ROOM];
  char *words[START_WORDS + 3];
  int n;
} start_line;

/* Adds NAME=VALUE; a text that is NULL is left out. A text that is too long is cut: the caller has checked it. */
void start_add(start_line *l, const char *name, const char *value);
void start_add_number(start_line *l, const char *name, uint64_t value);

/* A port from 1 to 65535 at *text, which then stands behind it. */
bool start_read_port(const char **text, uint64_t *out);

/* Adds HOST:PORT, which was given with --NAME, as NAME and NAME_port; NULL adds nothing. DONE, or WRONG_WORDS with a line on stderr. */
int start_add_place(const char *command, const char *name, const char *given, start_line *l);

/* What a tracker or a proxy knows a server by: the key, which may be NULL where none is needed, and the address, or NULL. The same
 * results. */
int start_check_entry(const char *command, bool needs_key, const char *key, const char *address);

/* A line on stderr on what an option needs; WRONG_WORDS. */
int start_wrong(const char *command, const char *option, const char *what, const char *given);

/* The program of TVM's RPC, from the tool's own folder, and what it is built with. */
#ifndef HEDDLE_RPC_INSTALLED
#define HEDDLE_RPC_INSTALLED "../libexec/heddle/heddle-rpc"
#endif
#define START_RPC_NEEDS "HEDDLE_RPC and HEDDLE_TVM"

/* Adds the path of such a program. DONE, or FAILED with a line on stderr where it is not there. */
int start_add_program(const char *command, const char *name, const char *program, const char *needs, start_line *l);

/* Becomes the program at a path from the tool's own folder, with what as its first word; returns FAILED, with a line on stderr,
 * where it cannot be started. needs: what it is built with. */
int start_program(const char *command, const char *program, const char *needs, const char *what, start_line *l);

#endif
