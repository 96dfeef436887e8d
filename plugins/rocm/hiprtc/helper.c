/* heddle-hiprtc: HIP's compiler for the plugin rocm, in a process that may die of it.
 *
 *   heddle-hiprtc version LIBRARY... --             which hiprtc there is
 *   heddle-hiprtc compile LIBRARY... -- OPTION...   the program on standard input to a code object
 *
 * The first library that has a compiler is used. The answer on standard output is a line "heddle-hiprtc VERDICT
 * COUNT COMPILER" and COUNT bytes: of verdict code, the object; of log, why there is none; of missing, why there is
 * no compiler; of version, none. Exit status 0 with an answer, 2 for wrong words or a broken pipe. */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* What of hiprtc is called; programs are opaque, results are 0 or a number. */
typedef struct hiprtc {
  int (*version)(int *major, int *minor);
  const char *(*words)(int result);
  int (*create)(void **out, const char *source, const char *name, int n, const char **headers, const char **names);
  int (*compile)(void *program, int n, const char **options);
  int (*log_size)(void *program, size_t *out);
  int (*log)(void *program, char *out);
  int (*code_size)(void *program, size_t *out);
  int (*code)(void *program, char *out);
} hiprtc;

/* ---------------------------------------------------------------- answering */

static int write_all(int fd, const char *bytes, size_t count) {
  while (count > 0) {
    const ssize_t put = write(fd, bytes, count);
    if (put <= 0) return 2;
    bytes += put;
    count -= (size_t)put;
  }
  return 0;
}

static int give(int fd, const char *verdict, const char *compiler, const char *bytes, size_t count) {
  char line[256];
  const int length = snprintf(line, sizeof line, "heddle-hiprtc %s %zu %.160s\n", verdict, count, compiler);
  return write_all(fd, line, (size_t)length) != 0 ? 2 : write_all(fd, bytes, count);
}

static int give_words(int fd, const char *verdict, const char *compiler, const char *format, ...) {
  char words[1024];
  va_list args;
  va_start(args, format);
  int length = vsnprintf(words, sizeof words, format, args);
  va_end(args);
  if (length >= (int)sizeof words) length = (int)sizeof words - 1;
  return give(fd, verdict, compiler, words, length > 0 ? (size_t)length : 0);
}

/* ---------------------------------------------------------------- the library */

static int load(void *library, hiprtc *out) {
  const struct {
    const char *name;
    void *member;
  } calls[] = {
      {"hiprtcVersion", &out->version},
      {"hiprtcGetErrorString", &out->words},
      {"hiprtcCreateProgram", &out->create},
      {"hiprtcCompileProgram", &out->compile},
      {"hiprtcGetProgramLogSize", &out->log_size},
      {"hiprtcGetProgramLog", &out->log},
      {"hiprtcGetCodeSize", &out->code_size},
      {"hiprtcGetCode", &out->code},
  };
  for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
    void *symbol = dlsym(library, calls[i].name);
    if (symbol == NULL) return 0;
    memcpy(calls[i].member, &symbol, sizeof out->version);
  }
  return 1;
}

/* The first of the names that is a compiler; else the reason why each is not, as text. */
static int find_hiprtc(char *const *names, int n, hiprtc *out, char *compiler, size_t compiler_bytes, char *words,
                       size_t words_bytes) {
  size_t used = 0;
  words[0] = '\0';
  for (int i = 0; i < n; i++) {
    const char *slash = strrchr(names[i], '/'), *why = "it has no hiprtc";
    void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (library != NULL && load(library, out)) {
      int major = 0, minor = 0;
      out->version(&major, &minor);
      snprintf(compiler, compiler_bytes, "hiprtc %d.%d (%s)", major, minor, slash != NULL ? slash + 1 : names[i]);
      return 1;
    }
    if (library == NULL) why = dlerror(); /* names the library itself */
    const int put =
        snprintf(words + used, words_bytes - used, "%s%s%s%s", i > 0 ? "; " : "", library != NULL ? names[i] : "",
                 library != NULL ? ": " : "", why != NULL ? why : "a library could not be loaded");
    if (put > 0) used = used + (size_t)put < words_bytes ? used + (size_t)put : words_bytes - 1;
  }
  return 0;
}

/* ---------------------------------------------------------------- compiling */

/* All of standard input with a zero behind it; NULL without memory. */
static char *read_source(void) {
  size_t room = 1 << 16, have = 0;
  char *text = malloc(room);
  while (text != NULL) {
    if (have + 1 == room) {
      char *bigger = realloc(text, room *= 2);
      if (bigger == NULL) {
        free(text);
        return NULL;
      }
      text = bigger;
    }
    const ssize_t got = read(STDIN_FILENO, text + have, room - have - 1);
    if (got <= 0) break;
    have += (size_t)got;
  }
  if (text != NULL) text[have] = '\0';
  return text;
}

static int give_log(int out, const hiprtc *rtc, void *program, const char *compiler, int result) {
  size_t bytes = 0;
  char *log = NULL;
  if (rtc->log_size(program, &bytes) == 0 && bytes > 1 && bytes < (size_t)1 << 28) log = calloc(bytes + 1, 1);
  if (log != NULL && rtc->log(program, log) == 0 && log[0] != '\0') return give(out, "log", compiler, log, strlen(log));
  return give_words(out, "log", compiler, "%s (%d)", rtc->words(result), result);
}

static int compile(int out, const hiprtc *rtc, const char *compiler, const char **options, int n) {
  char *source = read_source();
  void *program = NULL;
  size_t bytes = 0;
  if (source == NULL) return give_words(out, "log", compiler, "no memory for the source");
  int result = rtc->create(&program, source, "heddle.hip", 0, NULL, NULL);
  if (result != 0) return give_words(out, "log", compiler, "%s (%d)", rtc->words(result), result);
  result = rtc->compile(program, n, options);
  if (result != 0) return give_log(out, rtc, program, compiler, result);
  result = rtc->code_size(program, &bytes);
  char *code = result == 0 && bytes > 0 ? malloc(bytes) : NULL;
  if (code != NULL) result = rtc->code(program, code);
  if (code == NULL || result != 0)
    return give_words(out, "log", compiler, "no code: %s (%d)", rtc->words(result), result);
  return give(out, "code", compiler, code, bytes);
}

int main(int argc, char **argv) {
  const struct rlimit none = {0, 0};
  hiprtc rtc;
  char compiler[160] = "", words[1024];
  int split = 2;
  while (split < argc && strcmp(argv[split], "--") != 0) split++;
  if (argc < 2 || split >= argc || (strcmp(argv[1], "compile") != 0 && strcmp(argv[1], "version") != 0)) {
    fprintf(stderr, "usage: heddle-hiprtc version|compile LIBRARY... -- OPTION... (run by Heddle's plugin rocm)\n");
    return 2;
  }
  setrlimit(RLIMIT_CORE, &none); /* a crash is expected now and then: no file of it */
  /* What a library prints goes to standard error, not into the answer. */
  const int out = dup(STDOUT_FILENO);
  if (out < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return 2;
  int status = 0;
  if (!find_hiprtc(argv + 2, split - 2, &rtc, compiler, sizeof compiler, words, sizeof words))
    status = give(out, "missing", "", words, strlen(words));
  else if (strcmp(argv[1], "version") == 0) status = give(out, "version", compiler, "", 0);
  else {
    const char *options[32];
    int n = 0;
    for (int i = split + 1; i < argc && n < 32; i++) options[n++] = argv[i];
    status = compile(out, &rtc, compiler, options, n);
  }
  _exit(status); /* without the end of the compiler's libraries, which may crash too */
}
