// modules/tvm_cxx/messages.cpp: messages of programs that were compiled with TVM_LOG_CUSTOMIZE, and TVM's own element types,
// which there are none of here: inline code of TVM's headers that writes and reads dtypes asks for them.
#include "modules/tvm_cxx/layout.hpp"

#include <iostream>

namespace tvm {
namespace runtime {

namespace detail {
[[noreturn]] EXPORT void LogFatalImpl(const std::string &file, int line, const std::string &message);
EXPORT void LogMessageImpl(const std::string &file, int line, const std::string &message);            // up to v0.11
EXPORT void LogMessageImpl(const std::string &file, int line, int level, const std::string &message); // v0.12 and later

void LogFatalImpl(const std::string &file, int line, const std::string &message) {
  throw Error(file + ":" + std::to_string(line) + ": " + message);
}

void LogMessageImpl(const std::string &file, int line, const std::string &message) {
  std::cerr << file << ":" << line << ": " << message << std::endl;
}

void LogMessageImpl(const std::string &file, int line, int level, const std::string &message) {
  std::cerr << file << ":" << line << LogMessage::level_strings_[level >= 0 && level <= 4 ? level : 1] << message
            << std::endl;
}
} // namespace detail

EXPORT std::string GetCustomTypeName(uint8_t code);
EXPORT bool GetCustomTypeRegistered(uint8_t code);
EXPORT uint8_t ParseCustomDatatype(const std::string &text, const char **rest);

std::string GetCustomTypeName(uint8_t code) {
  throw Error("there is no dtype of code " + std::to_string(code));
}

bool GetCustomTypeRegistered(uint8_t) {
  return false;
}

uint8_t ParseCustomDatatype(const std::string &text, const char **) {
  throw Error("'" + text + "' is no dtype");
}

} // namespace runtime
} // namespace tvm
