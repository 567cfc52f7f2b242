// SPDX-License-Identifier: BSD-3-Clause
//
// Predefined operations on predefined types in plain C++, to compare MPI's results with. Values are small, so that no
// result overflows or is rounded, whatever the order of the processes.
#pragma once

#include <complex>
#include <cstdint>

#include "window.h"

namespace {

enum class Op { kMax, kMin, kSum, kProd, kLand, kBand, kLor, kBor, kLxor, kBxor, kMaxloc, kMinloc, kReplace, kNoOp };
constexpr int kOps = 14;
constexpr const char* kOpNames[] = {"max", "min",  "sum",  "prod",   "land",   "band",    "lor",
                                    "bor", "lxor", "bxor", "maxloc", "minloc", "replace", "no_op"};

// Not a table: in some MPIs the handles are no constants.
inline MPI_Op handle_of(Op op) {
    switch (op) {
    case Op::kMax: return MPI_MAX;
    case Op::kMin: return MPI_MIN;
    case Op::kSum: return MPI_SUM;
    case Op::kProd: return MPI_PROD;
    case Op::kLand: return MPI_LAND;
    case Op::kBand: return MPI_BAND;
    case Op::kLor: return MPI_LOR;
    case Op::kBor: return MPI_BOR;
    case Op::kLxor: return MPI_LXOR;
    case Op::kBxor: return MPI_BXOR;
    case Op::kMaxloc: return MPI_MAXLOC;
    case Op::kMinloc: return MPI_MINLOC;
    case Op::kReplace: return MPI_REPLACE;
    case Op::kNoOp: return MPI_NO_OP;
    }
    return MPI_OP_NULL;
}

// The memory of MPI's pair types.
template <class T>
struct Pair {
    T value;
    int at;
    bool operator==(const Pair& other) const { return value == other.value && at == other.at; }
};

// The groups of types that MPI names in its table of operations.
enum class Class { kInteger, kMultiLanguage, kLogical, kFloating, kComplex, kByte, kPair, kOther };

inline bool is_defined(Op op, Class of) {
    switch (op) {
    case Op::kMax:
    case Op::kMin: return of == Class::kInteger || of == Class::kMultiLanguage || of == Class::kFloating;
    case Op::kSum:
    case Op::kProd:
        return of == Class::kInteger || of == Class::kMultiLanguage || of == Class::kFloating || of == Class::kComplex;
    case Op::kLand:
    case Op::kLor:
    case Op::kLxor: return of == Class::kInteger || of == Class::kLogical;
    case Op::kBand:
    case Op::kBor:
    case Op::kBxor: return of == Class::kInteger || of == Class::kMultiLanguage || of == Class::kByte;
    case Op::kMaxloc:
    case Op::kMinloc: return of == Class::kPair;
    case Op::kReplace:
    case Op::kNoOp: return true;
    }
    return false;
}

template <class T, Class kOf>
T value_of(Op op, std::uint64_t random) {
    const int wide = static_cast<int>(random % 9), narrow = static_cast<int>(random % 3);
    if constexpr (kOf == Class::kPair) {
        return {static_cast<decltype(T::value)>(wide % 4 - 1), static_cast<int>(random / 9 % 50)};
    } else if constexpr (kOf == Class::kComplex) {
        using Part = typename T::value_type;
        if (op == Op::kProd) return T(static_cast<Part>(narrow - 1), static_cast<Part>(1));
        return T(static_cast<Part>(wide) / 4, static_cast<Part>(-narrow));
    } else if constexpr (kOf == Class::kFloating) {
        return op == Op::kProd ? static_cast<T>(narrow - 1.5) : static_cast<T>(wide) / 8 - static_cast<T>(narrow);
    } else if constexpr (kOf == Class::kLogical) {
        return static_cast<T>(random % 2);
    } else if (op == Op::kProd) {
        return static_cast<T>(narrow);
    } else if (op == Op::kLand || op == Op::kLor || op == Op::kLxor) {
        return static_cast<T>(narrow == 2 ? 6 : narrow);  // any value but 0 is true
    } else if (op == Op::kMax || op == Op::kMin || op == Op::kSum) {
        // Open MPI compares some multi-language types as if they had no sign.
        return static_cast<T>(std::is_signed_v<T> && kOf != Class::kMultiLanguage ? wide - 4 : wide);
    } else {
        return static_cast<T>(random);  // every bit
    }
}

template <class T>
T choose_pair(bool first_wins, bool tie, const T& a, const T& b) {
    if (tie) return {a.value, std::min(a.at, b.at)};
    return first_wins ? a : b;
}

template <class T, Class kOf>
T combined(Op op, const T& old, const T& sent) {
    if (op == Op::kReplace) return sent;
    if (op == Op::kNoOp) return old;
    if constexpr (kOf == Class::kPair) {
        return choose_pair(op == Op::kMaxloc ? old.value > sent.value : old.value < sent.value, old.value == sent.value,
                           old, sent);
    } else if constexpr (kOf == Class::kComplex) {
        return op == Op::kSum ? old + sent : old * sent;
    } else if constexpr (kOf == Class::kFloating) {
        switch (op) {
        case Op::kMax: return std::max(old, sent);
        case Op::kMin: return std::min(old, sent);
        case Op::kSum: return old + sent;
        default: return old * sent;
        }
    } else if constexpr (kOf != Class::kOther) {
        switch (op) {
        case Op::kMax: return std::max(old, sent);
        case Op::kMin: return std::min(old, sent);
        case Op::kSum: return static_cast<T>(old + sent);
        case Op::kProd: return static_cast<T>(old * sent);
        case Op::kLand: return static_cast<T>((old != 0) && (sent != 0));
        case Op::kLor: return static_cast<T>((old != 0) || (sent != 0));
        case Op::kLxor: return static_cast<T>((old != 0) != (sent != 0));
        case Op::kBand: return static_cast<T>(old & sent);
        case Op::kBor: return static_cast<T>(old | sent);
        default: return static_cast<T>(old ^ sent);
        }
    } else {
        return old;
    }
}

}  // namespace
