// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a function requires of locks, and what a lock guards, as attributes that clang checks at
// compile time (-Wthread-safety). Other compilers ignore them. The names are those of
// https://clang.llvm.org/docs/ThreadSafetyAnalysis.html.
//
// The analysis looks at one function at a time. A lambda that runs under a lock of the function
// around it begins with `lock.assert_held()`.

#ifdef __clang__
#define ISTHMUS_THREAD_ATTRIBUTE(...) __attribute__((__VA_ARGS__))
#else
#define ISTHMUS_THREAD_ATTRIBUTE(...)
#endif

// A class of locks, and a class whose objects hold a lock until they are destroyed.
#define ISTHMUS_CAPABILITY(kind)  ISTHMUS_THREAD_ATTRIBUTE(capability(kind))
#define ISTHMUS_SCOPED_CAPABILITY ISTHMUS_THREAD_ATTRIBUTE(scoped_lockable)
// A field that is accessed only under the lock.
#define ISTHMUS_GUARDED_BY(lock) ISTHMUS_THREAD_ATTRIBUTE(guarded_by(lock))
// A function that is called with the locks held.
#define ISTHMUS_REQUIRES(...) ISTHMUS_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define ISTHMUS_REQUIRES_SHARED(...) \
  ISTHMUS_THREAD_ATTRIBUTE(requires_shared_capability(__VA_ARGS__))
// A function that acquires or releases the locks; without an argument, the object's own.
#define ISTHMUS_ACQUIRE(...)        ISTHMUS_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define ISTHMUS_ACQUIRE_SHARED(...) ISTHMUS_THREAD_ATTRIBUTE(acquire_shared_capability(__VA_ARGS__))
#define ISTHMUS_RELEASE_SHARED(...) ISTHMUS_THREAD_ATTRIBUTE(release_shared_capability(__VA_ARGS__))
#define ISTHMUS_TRY_ACQUIRE(...)    ISTHMUS_THREAD_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))
#define ISTHMUS_RELEASE(...)        ISTHMUS_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
// A function after which the analysis considers the lock as held.
#define ISTHMUS_ASSERT_CAPABILITY(...) ISTHMUS_THREAD_ATTRIBUTE(assert_capability(__VA_ARGS__))
// A function whose locking the analysis cannot follow; a comment says why.
#define ISTHMUS_NO_THREAD_SAFETY_ANALYSIS ISTHMUS_THREAD_ATTRIBUTE(no_thread_safety_analysis)
