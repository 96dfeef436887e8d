/* tools/against.h: commands that measure and compare against another runtime, by the Python package. */
#ifndef HEDDLE_TOOLS_AGAINST_H
#define HEDDLE_TOOLS_AGAINST_H

#include "options.h"

#define OPTION_AGAINST(help) \
  { "against", OPTION_TEXT, "RUNTIME", offsetof(options, against), help }

/* Goes on as the module heddle.against of the Python package, with the words of the command that it knows; gives a status
 * only where that cannot be started. The Python is HEDDLE_PYTHON, else python3. */
int against_run(const char *command, const options *o);

#endif
