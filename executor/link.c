/* executor/link.c: a package as an object file with a C header, for programs without files: one read-only section, aligned as
 * the package's pages are, with one symbol. The object is ELF, of the machine that Heddle was built for. */
#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/whole_file.h"
#include "graph/package.h"
#include "heddle/pack.h"

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#elif defined(__aarch64__) && defined(__AARCH64EL__)
#define MACHINE EM_AARCH64
#else
#define MACHINE EM_NONE
#endif

#define MOST_BYTES (UINT64_C(1) << 31) /* what code reaches without another model of addresses */
enum { NONE, DATA, SYMBOLS, STRINGS, STACK, NAMES, SECTIONS, MOST_NAME = 128 };

static const char section_names[] = "\0.rodata\0.symtab\0.strtab\0.note.GNU-stack\0.shstrtab";

static uint32_t name_at(const char *name) {
  for (uint32_t at = 1; at < sizeof section_names; at += (uint32_t)strlen(section_names + at) + 1)
    if (strcmp(section_names + at, name) == 0) return at;
  return 0;
}

static heddle_status pad(heddle__aside *file, uint64_t *at, uint64_t until, heddle_error *err) {
  static const char zeros[HEDDLE__PACKAGE_PAGE];
  heddle_status s = heddle__aside_put(file, zeros, (size_t)(until - *at), err);
  *at = until;
  return s;
}

static heddle_status put(heddle__aside *file, uint64_t *at, const void *data, uint64_t bytes, heddle_error *err) {
  *at += bytes;
  return heddle__aside_put(file, data, (size_t)bytes, err);
}

/* Data, symbols, their names, the sections' names, and their headers, one behind another. */
static heddle_status put_object(heddle__aside *file, const char *name, const void *data, uint64_t bytes,
                                heddle_error *err) {
  const uint64_t strings = strlen(name) + 2, data_at = HEDDLE__PACKAGE_PAGE;
  const uint64_t symbols_at = heddle__round_up(data_at + bytes, 8), strings_at = symbols_at + 2 * sizeof(Elf64_Sym);
  const uint64_t names_at = strings_at + strings, headers_at = heddle__round_up(names_at + sizeof section_names, 8);
  const Elf64_Ehdr head = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                           .e_type = ET_REL,
                           .e_machine = MACHINE,
                           .e_version = EV_CURRENT,
                           .e_shoff = headers_at,
                           .e_ehsize = sizeof head,
                           .e_shentsize = sizeof(Elf64_Shdr),
                           .e_shnum = SECTIONS,
                           .e_shstrndx = NAMES};
  const Elf64_Sym symbols[2] = {
      {0}, {.st_name = 1, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), .st_shndx = DATA, .st_size = bytes}};
  const Elf64_Shdr sections[SECTIONS] = {
      [DATA] = {name_at(".rodata"), SHT_PROGBITS, SHF_ALLOC, 0, data_at, bytes, 0, 0, HEDDLE__PACKAGE_PAGE, 0},
      [SYMBOLS] = {name_at(".symtab"), SHT_SYMTAB, 0, 0, symbols_at, sizeof symbols, STRINGS, 1, 8, sizeof symbols[0]},
      [STRINGS] = {name_at(".strtab"), SHT_STRTAB, 0, 0, strings_at, strings, 0, 0, 1, 0},
      [STACK] = {name_at(".note.GNU-stack"), SHT_PROGBITS, 0, 0, strings_at, 0, 0, 0, 1, 0},
      [NAMES] = {name_at(".shstrtab"), SHT_STRTAB, 0, 0, names_at, sizeof section_names, 0, 0, 1, 0}};
  uint64_t at = 0;
  heddle_status s = put(file, &at, &head, sizeof head, err);
  if (s == HEDDLE_OK) s = pad(file, &at, data_at, err);
  if (s == HEDDLE_OK) s = put(file, &at, data, bytes, err);
  if (s == HEDDLE_OK) s = pad(file, &at, symbols_at, err);
  if (s == HEDDLE_OK) s = put(file, &at, symbols, sizeof symbols, err);
  if (s == HEDDLE_OK) s = put(file, &at, "", 1, err);
  if (s == HEDDLE_OK) s = put(file, &at, name, strings - 1, err);
  if (s == HEDDLE_OK) s = put(file, &at, section_names, sizeof section_names, err);
  if (s == HEDDLE_OK) s = pad(file, &at, headers_at, err);
  return s == HEDDLE_OK ? put(file, &at, sections, sizeof sections, err) : s;
}

static heddle_status write_object(const char *path, const char *name, const void *data, uint64_t bytes,
                                  heddle_error *err) {
  heddle__aside file;
  heddle_status s = heddle__aside_begin(&file, path, false, err);
  if (s != HEDDLE_OK) return s;
  s = put_object(&file, name, data, bytes, err);
  if (s == HEDDLE_OK) return heddle__aside_keep(&file, err);
  heddle__aside_drop(&file);
  return s;
}

static heddle_status write_header(const char *path, const char *name, uint64_t bytes, heddle_error *err) {
  char *text = heddle__format("/* %s.h: a model in memory, for heddle_model_load_memory; written by heddle link. */\n"
                              "#ifndef %s_H\n#define %s_H\n\n"
                              "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n"
                              "/* At a multiple of %d. */\nextern const unsigned char %s[%llu];\n\n"
                              "#ifdef __cplusplus\n}\n#endif\n\n#endif\n",
                              name, name, name, HEDDLE__PACKAGE_PAGE, name, (unsigned long long)bytes);
  heddle_status s =
      text != NULL ? heddle__file_write(path, text, strlen(text), err) : heddle__no_memory(err, "a header");
  heddle__free(text);
  return s;
}

/* Words of C and C++ that no symbol has, and the name of the program's own function. */
static const char reserved[] =
    " alignas alignof and and_eq asm auto bitand bitor bool break case catch char class co_await co_return co_yield "
    "compl concept const const_cast consteval constexpr constinit continue decltype default delete do double "
    "dynamic_cast else enum explicit export extern false float for friend goto if inline int long main mutable "
    "namespace new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast "
    "requires restrict return short signed sizeof static static_assert static_cast struct switch template this "
    "thread_local throw true try typedef typeid typename typeof union unsigned using virtual void volatile wchar_t "
    "while xor xor_eq ";

static bool is_reserved(const char *name) {
  const size_t n = strlen(name);
  for (const char *at = reserved; (at = strstr(at, name)) != NULL; at++)
    if (at[-1] == ' ' && at[n] == ' ') return true;
  return false;
}

static bool is_name(const char *name) {
  size_t n = strlen(name);
  bool good = n > 0 && n < MOST_NAME && !isdigit((unsigned char)name[0]) && !is_reserved(name);
  for (size_t i = 0; i < n && good; i++)
    good = name[i] == '_' || (name[i] >= '0' && name[i] <= '9') || (name[i] >= 'a' && name[i] <= 'z') ||
           (name[i] >= 'A' && name[i] <= 'Z');
  return good;
}

static bool is_elf(const char *path) {
  char head[SELFMAG] = "";
  FILE *file = fopen(path, "rb");
  if (file == NULL) return false;
  const bool is_one = fread(head, 1, sizeof head, file) == sizeof head && memcmp(head, ELFMAG, SELFMAG) == 0;
  fclose(file);
  return is_one;
}

/* A package's bytes. */
static heddle_status read_package(const char *path, const char *name, void **data, size_t *bytes, heddle_error *err) {
  heddle_status s = heddle__file_read(path, MOST_BYTES, data, bytes, err);
  if (s != HEDDLE_ELIMIT) return s;
  return heddle__fail(err, s, "%.400s: an object file holds a model of 2 GiB at most, which is what code reaches",
                      name);
}

/* The package of a file that is one; else of what is packed now, beside the object. */
static heddle_status take_package(const char *folder, const char *name, const heddle_pack_options *o, void **data,
                                  size_t *bytes, heddle_error *err) {
  const char *given = o->n_models == 1 && o->models[0] != NULL ? o->models[0]->graph_path : NULL;
  if (given != NULL && o->n_targets == 0 && heddle__is_package(given))
    return read_package(given, given, data, bytes, err);
  if (given != NULL && is_elf(given))
    return heddle__fail(
        err, HEDDLE_EINVAL,
        "%.400s: it is a library, and a graph of operators is linked; the code of a compiled model goes into a "
        "program as objects, and heddle unpack gives the graph",
        given);
  char *path = heddle__format("%s/.%s.%ld.heddle", folder, name, (long)getpid());
  if (path == NULL) return heddle__no_memory(err, "a path");
  heddle_status s = heddle_pack(path, o, err);
  if (s == HEDDLE_OK) s = read_package(path, given != NULL ? given : name, data, bytes, err);
  (void)unlink(path);
  heddle__free(path);
  return s;
}

heddle_status heddle_link(const char *folder, const char *name, const heddle_pack_options *options, heddle_error *err) {
  if (folder == NULL || folder[0] == '\0' || name == NULL || options == NULL)
    return heddle__fail(err, HEDDLE_EINVAL, "linking needs a folder, a name and what is packed");
  if (!is_name(name))
    return heddle__fail(err, HEDDLE_EINVAL,
                        "'%.100s' is no name for a symbol of C and C++: letters, digits and _, no digit first, no word "
                        "of the language",
                        name);
  heddle_pack_options o = {0};
  memcpy(&o, options, options->struct_size < sizeof o ? options->struct_size : sizeof o);
  o.struct_size = sizeof o;
  if (o.n_libraries > 0) return heddle__fail(err, HEDDLE_EINVAL, "a graph of operators is linked, without a library");
  if (MACHINE == EM_NONE)
    return heddle__fail(err, HEDDLE_EUNSUPPORTED, "objects are written for x86-64 and little-endian arm64");
  if (mkdir(folder, 0777) != 0 && errno != EEXIST)
    return heddle__fail(err, HEDDLE_EIO, "the folder %.400s could not be made: %s", folder, strerror(errno));
  void *data = NULL;
  size_t bytes = 0;
  char *object = heddle__format("%s/%s.o", folder, name), *header = heddle__format("%s/%s.h", folder, name);
  heddle_status s = object != NULL && header != NULL ? HEDDLE_OK : heddle__no_memory(err, "a path");
  if (s == HEDDLE_OK) s = take_package(folder, name, &o, &data, &bytes, err);
  if (s == HEDDLE_OK) s = write_object(object, name, data, bytes, err);
  if (s == HEDDLE_OK) s = write_header(header, name, bytes, err);
  heddle__free(data);
  heddle__free(object);
  heddle__free(header);
  return s;
}
