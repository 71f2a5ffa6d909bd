----------------------------- MODULE Freshness -----------------------------
(* Devices share one vault, and an adversary puts any file that ever was at any device's path. A device opens a file only  *)
(* if the file descends from all that the device has stored or read. README.md says what is left out.                      *)
EXTENDS Naturals, Sequences, FiniteSets, TLC

CONSTANTS
    Devices,
    LastCommit,       \* how many commits there are at most, those that begin an epoch among them
    Bound,            \* how many commits of earlier epochs a file lists
    ChecksAncestry,   \* FALSE: in another epoch only the epochs' numbers are compared
    AnchorsReads,     \* FALSE: the anchor moves only when the device writes
    MergesContent     \* FALSE: merging lists the commits of the copy and takes nothing of it

VARIABLES
    file,     \* the file at each device's path
    anchor,   \* what each device remembers
    seen,     \* the commits that each device has stored or read
    files,    \* every file that ever was
    next,     \* the next commit
    lost      \* whether a merge lost a value that the other file had not replaced

vars == <<file, anchor, seen, files, next, lost>>

Max(a, b) == IF a > b THEN a ELSE b
Maximum(numbers) == CHOOSE n \in numbers : \A m \in numbers : m <= n

(* A commit is its number and its sequence in the vault. An epoch is named by the commit that begins it.                    *)
Commit(number, sequence) == [number |-> number, sequence |-> sequence]
NoEpoch == 0

(* What a file lists of earlier epochs: the newest commits.                                                                *)
RECURSIVE Newest(_, _)
Newest(commits, count) ==
    IF commits = {} \/ count = 0 THEN {}
    ELSE LET c == CHOOSE c \in commits : \A d \in commits :
                    d.sequence < c.sequence \/ (d.sequence = c.sequence /\ d.number <= c.number)
         IN  {c} \cup Newest(commits \ {c}, count - 1)

(* A new file that descends from `past`. `values` are the values of the one item: two after a conflict.                     *)
Begin(number, sequence, epochNumber, listed, past, values) ==
    LET first == Commit(number, sequence)
    IN  [epoch |-> number, epochNumber |-> epochNumber, sequence |-> sequence, head |-> first,
         chain |-> {first}, listed |-> Newest(listed, Bound), past |-> past \cup {first}, values |-> values]

History(f) == f.listed \cup f.chain

Anchor(f) == [epoch |-> f.epoch, epochNumber |-> f.epochNumber, head |-> f.head, coming |-> NoEpoch]

Accepts(a, f) ==
    IF a.epoch = f.epoch THEN a.head \in f.chain
    ELSE \/ a.coming = f.epoch
         \/ IF ChecksAncestry THEN a.head \in f.listed ELSE f.epochNumber > a.epochNumber

Init ==
    LET f == Begin(1, 1, 1, {}, {}, {})
    IN  /\ file = [d \in Devices |-> f]
        /\ anchor = [d \in Devices |-> Anchor(f)]
        /\ seen = [d \in Devices |-> {f.head}]
        /\ files = {f}
        /\ next = 2
        /\ lost = FALSE

Opens(d) == Accepts(anchor[d], file[d])

(* Device d has `f` at its path and has acknowledged it.                                                                   *)
Put(d, f) ==
    /\ file' = [file EXCEPT ![d] = f]
    /\ files' = files \cup {f}
    /\ anchor' = [anchor EXCEPT ![d] = Anchor(f)]
    /\ next' = next + 1

Read(d) ==
    /\ Opens(d)
    /\ seen' = [seen EXCEPT ![d] = @ \cup file[d].past]
    /\ anchor' = IF AnchorsReads THEN [anchor EXCEPT ![d] = Anchor(file[d])] ELSE anchor
    /\ UNCHANGED <<file, files, next, lost>>

Store(d) ==
    /\ Opens(d) /\ next <= LastCommit
    /\ LET c == Commit(next, file[d].sequence + 1)
           f == [file[d] EXCEPT !.sequence = @ + 1, !.head = c, !.chain = @ \cup {c}, !.past = @ \cup {c},
                                !.values = {c}]
       IN  /\ Put(d, f)
           /\ seen' = [seen EXCEPT ![d] = @ \cup f.past]
    /\ UNCHANGED lost

(* A new file takes the vault's name. A crash may come before that, or before the anchor moves on.                          *)
Replace(d, f, newlySeen) ==
    /\ next' = next + 1
    /\ files' = files \cup {f}
    /\ \/ /\ file' = [file EXCEPT ![d] = f]
          /\ anchor' = [anchor EXCEPT ![d] = Anchor(f)]
          /\ seen' = [seen EXCEPT ![d] = newlySeen]
       \/ \E isRenamed \in BOOLEAN :
            LET former == IF anchor[d].coming = file[d].epoch THEN Anchor(file[d]) ELSE anchor[d]
            IN  /\ file' = IF isRenamed THEN [file EXCEPT ![d] = f] ELSE file
                /\ anchor' = [anchor EXCEPT ![d] = [former EXCEPT !.coming = f.epoch]]
                \* Who adopts a file decides that what it lacks is no more.
                /\ seen' = IF newlySeen \subseteq seen[d] \/ seen[d] \subseteq newlySeen
                           THEN seen ELSE [seen EXCEPT ![d] = @ \cap newlySeen]

Compact(d) ==
    /\ Opens(d) /\ next <= LastCommit
    /\ LET old == file[d]
           f == Begin(next, old.sequence, old.epochNumber + 1, History(old), old.past, old.values)
       IN  Replace(d, f, seen[d] \cup f.past)
    /\ UNCHANGED lost

Adopt(d) ==
    /\ next <= LastCommit
    /\ LET old == file[d]
           sequence == Max(old.sequence, anchor[d].head.sequence) + 1
           f == Begin(next, sequence, Max(old.epochNumber, anchor[d].epochNumber) + 1, History(old), old.past,
                      old.values)
       IN  Replace(d, f, f.past)
    /\ UNCHANGED lost

(* Whether a value is gone that the other file did not know.                                                               *)
Loses(values, known, result) == \E v \in values : ~(v \in known) /\ ~(v \in result)

Merge(d, copy) ==
    LET ours == file[d]
        common == History(ours) \cap History(copy)
        fork == Maximum({c.sequence : c \in common})
        isNew(values) == \E v \in values : v.sequence > fork
        sequence == Max(Max(ours.sequence, copy.sequence), anchor[d].head.sequence) + 1
        kept == IF ~isNew(copy.values) THEN ours.values
                ELSE IF ~isNew(ours.values) THEN copy.values
                ELSE ours.values \cup copy.values
        \* What was changed since has a generation of the merge.
        taken == {IF v.sequence > fork THEN Commit(v.number, sequence) ELSE v : v \in kept}
        number(values) == {v.number : v \in values}
        past(f) == {c.number : c \in f.past}
        f == Begin(next, sequence, Max(Max(ours.epochNumber, copy.epochNumber), anchor[d].epochNumber) + 1,
                   History(ours) \cup History(copy),
                   IF MergesContent THEN ours.past \cup copy.past ELSE ours.past,
                   IF MergesContent THEN taken ELSE ours.values)
    IN  /\ next <= LastCommit
        /\ common # {}
        /\ copy.head \notin History(ours)
        /\ anchor[d].coming = ours.epoch \/ anchor[d].head \in History(ours) \cup History(copy)
        /\ Replace(d, f, seen[d] \cup f.past)
        /\ lost' = (lost \/ Loses(number(copy.values), past(ours), number(f.values))
                        \/ Loses(number(ours.values), past(copy), number(f.values)))

Adversary(d, f) ==
    /\ file' = [file EXCEPT ![d] = f]
    /\ UNCHANGED <<anchor, seen, files, next, lost>>

Next ==
    \E d \in Devices :
        \/ Read(d) \/ Store(d) \/ Compact(d) \/ Adopt(d)
        \/ \E f \in files : Adversary(d, f) \/ Merge(d, f)

Symmetry == Permutations(Devices)

Spec == Init /\ [][Next]_vars

(* What a device has stored or read is never silently absent there.                                                        *)
Fresh == \A d \in Devices : Opens(d) => seen[d] \subseteq file[d].past

(* A merge loses no value that the other file had not replaced knowingly.                                                  *)
NothingLost == ~lost

(* What has all that a device has seen is opened, unless the file lists too few commits to tell.                            *)
Useful == \A d \in Devices :
    (file[d].past \subseteq UNION {History(f) : f \in {file[d]}} /\ anchor[d].head \in file[d].past) => Opens(d)
=============================================================================
