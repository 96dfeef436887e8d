/* core/system_prefix.h: the prefix that a file beside libheddle names, heddle/system_prefix; "" where there is none, and what
 * was built in counts. It is read once. */
#ifndef HEDDLE_CORE_SYSTEM_PREFIX_H
#define HEDDLE_CORE_SYSTEM_PREFIX_H

const char *heddle__system_prefix(void);
const char *heddle__system_prefix_file(void); /* the configuration file in it; "" */

#endif
