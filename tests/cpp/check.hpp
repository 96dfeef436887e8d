// tests/cpp/check.hpp: a test program in C++: cases that register themselves, and checks that tell what was found.
// `program` runs all of them, `program NAME` one; status 0: all checks held.
#ifndef HEDDLE_TESTS_CPP_CHECK_HPP
#define HEDDLE_TESTS_CPP_CHECK_HPP

#include <cstdio>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

namespace check {

struct Case {
  const char *name;
  void (*run)();
};

inline std::vector<Case> &cases() {
  static std::vector<Case> all;
  return all;
}

inline int &failures() {
  static int n = 0;
  return n;
}

struct Register {
  Register(const char *name, void (*run)()) {
    cases().push_back({name, run});
  }
};

inline void fail(const char *file, int line, const std::string &text) {
  std::fprintf(stderr, "%s:%d: %s\n", file, line, text.c_str());
  failures()++;
}

template <class A, class B> void equal(const A &a, const B &b, const char *words, const char *file, int line) {
  if (a == b) return;
  std::ostringstream text;
  text << words << ": " << a << " is not " << b;
  fail(file, line, text.str());
}

inline void contains(const std::string &text, const std::string &part, const char *file, int line) {
  if (text.find(part) == std::string::npos) fail(file, line, "'" + part + "' is not in '" + text + "'");
}

inline int main(int argc, char **argv) {
  int ran = 0;
  for (const Case &one : cases()) {
    if (argc > 1 && std::strcmp(argv[1], one.name) != 0) continue;
    const int before = failures();
    one.run();
    std::printf("%s %s\n", failures() == before ? "ok    " : "FAILED", one.name);
    ran++;
  }
  return ran > 0 && failures() == 0 ? 0 : 1;
}

} // namespace check

#define CASE(name) \
  static void name(); \
  static const check::Register register_##name(#name, name); \
  static void name()
#define CHECK(what) ((what) ? (void)0 : check::fail(__FILE__, __LINE__, #what))
#define NOT_REACHED() check::fail(__FILE__, __LINE__, "nothing was thrown")
#define EQUAL(a, b) check::equal(a, b, #a, __FILE__, __LINE__)
#define CONTAINS(text, part) check::contains(text, part, __FILE__, __LINE__)
// An expression that has to throw a heddle::Error of a status; gives the error.
#define THROWS(expression, wanted) \
  ([&]() -> heddle::Error { \
    try { \
      (void)(expression); \
    } catch (const heddle::Error &thrown) { \
      check::equal(std::string(thrown.status_name()), std::string(#wanted), #expression, __FILE__, __LINE__); \
      return thrown; \
    } \
    check::fail(__FILE__, __LINE__, #expression " threw nothing"); \
    return {}; \
  }())

#endif
