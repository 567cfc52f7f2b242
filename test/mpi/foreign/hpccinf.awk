# SPDX-License-Identifier: BSD-3-Clause
# Makes a small hpccinf.txt from Debian's example: -v n=ORDER -v nb=BLOCK -v p=ROWS -v q=COLUMNS
$2 == "Ns" { $1 = n }
$2 == "NBs" && !blocks++ { $1 = nb }
$2 == "Ps" { $1 = p }
$2 == "Qs" { $1 = q }
{ print }
