/* tools/objects.h: compiled models as objects: NAME.o, or NAME.tar of objects as TVM's export_library writes, which Python
 * links to a library before it loads them; so does the tool. */
#ifndef HEDDLE_TOOLS_OBJECTS_H
#define HEDDLE_TOOLS_OBJECTS_H

#include <stdbool.h>

bool objects_are(const char *path);

/* Links the objects of a file with the machine's C compiler (CC, else cc, gcc or clang) to a library in a folder of its own,
 * which goes when the program ends; the packed graph in an object that heddle link wrote is written there as it is. The path, freed with free; NULL, and a message, where that fails. Blocks. */
char *objects_link(const char *command, const char *path);

/* The file of objects that a library was linked of, else the path itself. The words of the command line outlive it. */
const char *objects_source(const char *path);

#endif
