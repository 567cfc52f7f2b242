# SPDX-License-Identifier: BSD-3-Clause
# COOP_CXX20: adds -std=gnu++20 to CXX and compiles a probe to check that the compiler and its library are new enough.
# The probe uses features that gcc 10 and clang 13 (with their libraries) lack.
AC_DEFUN([COOP_CXX20], [
  AC_LANG_PUSH([C++])
  CXX="$CXX -std=gnu++20"
  AC_CACHE_CHECK([whether $CXX compiles C++20], [coop_cv_cxx20],
    [AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
        #include <bit>
        #include <compare>
        #include <concepts>
        #include <cstdint>
        #include <span>
        enum class Color { red, green };
        struct Point { int x = 0; int y = 0; auto operator<=>(const Point&) const = default; };
        template <std::integral T> constexpr T twice(T v) { return v + v; }
        constexpr int pick(Color c) { switch (c) { using enum Color; case red: return 1; case green: return 2; } return 0; }
        static_assert(std::bit_cast<std::uint32_t>(1.0f) == 0x3f800000u && twice(2) == 4 && pick(Color::green) == 2);
      ]], [[
        int values[] = {1, 2, 3};
        Point p{.x = static_cast<int>(std::span<int>(values).size())};
        return p == Point{.x = 3} ? 0 : 1;
      ]])], [coop_cv_cxx20=yes], [coop_cv_cxx20=no])])
  AC_LANG_POP([C++])
  AS_IF([test "$coop_cv_cxx20" != yes],
    [AC_MSG_ERROR([the compiler '$CXX' does not compile C++20: gcc 11 or clang 14, or newer, is needed (choose one with CXX=...)])])
])
