/* tools/completion.h: what may stand at the last word of a command line; bash's completion asks for it. */
#ifndef HEDDLE_TOOLS_COMPLETION_H
#define HEDDLE_TOOLS_COMPLETION_H

/* heddle complete WORD...: the words after "heddle", the last of which is being typed and may be empty. Prints the words
 * that it may become, one a line; one that ends in '/', '=', ':' or ',' goes on. Nothing where nothing fits. */
int complete_words(int n, char **words);

#endif
