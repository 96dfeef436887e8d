/* Images that the engine cannot run itself: PTX and the ELF files of GPUs. Their kernels' names and parameters are
 * read, and a C function of each name runs in its place. */
#ifndef HEDDLE_TESTS_FAKES_ENGINE_FOREIGN_H
#define HEDDLE_TESTS_FAKES_ENGINE_FOREIGN_H

#include "engine_inside.h"

#define ENG_SHARED 49152
#define ENG_SHARED_MOST 166912 /* dynamic shared memory that a kernel may ask for */

/* A code without parameters, that runs the C function of its name where there is one. */
eng_code *eng_code_new(const char *name, size_t name_bytes);
/* Takes code, whose parameters are filled, into a list; false: no memory, and it is dropped. */
bool eng_code_list(eng_code ***codes, size_t *count, eng_code *code);
bool eng_code_param(eng_code *code, unsigned bytes, bool pointer);

/* As eng_program_codes. image: 0-terminated text; a whole ELF file. */
int eng_ptx_codes(const char *image, const eng_device *device, eng_code ***codes, size_t *count, char *log,
                  size_t log_bytes);
int eng_elf_codes(const void *image, eng_code ***codes, size_t *count, char *log, size_t log_bytes);

#endif
