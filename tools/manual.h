/* tools/manual.h: the manual page, made of the commands' tables. */
#ifndef HEDDLE_TOOLS_MANUAL_H
#define HEDDLE_TOOLS_MANUAL_H

/* heddle man: prints heddle.1, in roff with the macros of man(7). The build keeps what it prints, and installs it. */
int print_manual(int n, char **words);

#endif
