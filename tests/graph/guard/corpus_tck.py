"""Reads that follow the themes of the openCypher Technology Compatibility Kit, category by category."""

from __future__ import annotations

READS = [
    # MATCH: nodes, relationships, directions, types, variable length, named paths.
    "MATCH (n) RETURN n",
    "MATCH () RETURN count(*)",
    "MATCH (n:A:B) RETURN n",
    "MATCH (n {name: 'bar'}) RETURN n",
    "MATCH (n), (m) RETURN n.num AS n, m.num AS m",
    "MATCH ()-[r]-() RETURN r",
    "MATCH ()-->() RETURN count(*)",
    "MATCH ()<--() RETURN count(*)",
    "MATCH ()--() RETURN count(*)",
    "MATCH ()<-->() RETURN count(*)",
    "MATCH ()-[]->() RETURN count(*)",
    "MATCH (a)-[r:KNOWS]->(b) RETURN a, r, b",
    "MATCH (a)<-[r:KNOWS]-(b) RETURN a, r, b",
    "MATCH (n)-[r:KNOWS|HATES]->(x) RETURN r",
    "MATCH (n)-[r:KNOWS|:HATES]->(x) RETURN r",
    "MATCH (n)-[r {name: 'r'}]->(x) RETURN r",
    "MATCH (a)-[r1]->(b)-[r2]->(c)<-[r3]-(d) RETURN a, d",
    "MATCH (a)-[*]->(b) RETURN b",
    "MATCH (a)-[*2]->(b) RETURN b",
    "MATCH (a)-[*1..3]->(b) RETURN b",
    "MATCH (a)-[*..3]->(b) RETURN b",
    "MATCH (a)-[*2..]->(b) RETURN b",
    "MATCH (a)-[*0..1]->(b) RETURN b",
    "MATCH (a)-[r:LIKES*1..2]->(b) RETURN last(r)",
    "MATCH (a)-[:LIKES * 1 .. 2 {blocked: false}]->(b) RETURN b",
    "MATCH (a)-[rs*]->(b) WHERE all(r IN rs WHERE r.weight > 1) RETURN rs",
    "MATCH p = (a)-[:T*0..]->(b) RETURN p",
    "MATCH p = (a {name: 'A'})-[*3]->(b), q = (b)-->() RETURN p, q",
    "MATCH p = (n) RETURN p",
    "MATCH p = (a)-->(b)<--(c) RETURN relationships(p), nodes(p), length(p)",
    "MATCH (a)-[r]->(a) RETURN r",
    "MATCH (a:A)-->(b:B)-->(c:C), (a)-->(c) RETURN a, b, c",
    "MATCH (a:A) MATCH (a)-[:T]->(b) RETURN b",
    "MATCH (a), (b) WHERE a.id = b.id RETURN a, b",
    # OPTIONAL MATCH.
    "OPTIONAL MATCH (n) RETURN n",
    "MATCH (a:A) OPTIONAL MATCH (a)-[r:X]->(b) RETURN a, r, b",
    "MATCH (a) OPTIONAL MATCH (a)-->(b) WHERE b.name = 'x' OPTIONAL MATCH (b)-->(c) RETURN a, b, c",
    "OPTIONAL MATCH (a:Missing) WITH a OPTIONAL MATCH (b:B) RETURN coalesce(a, b)",
    "OPTIONAL MATCH p = (a)-[:X]->(b) RETURN p IS NULL AS missing",
    # WHERE: predicates, patterns, null.
    "MATCH (n) WHERE n.name = 'Bar' RETURN n",
    "MATCH (n) WHERE n.animal IS NOT NULL AND n.name IS NULL RETURN n",
    "MATCH (n) WHERE NOT (n.age > 10 OR n.age < 5) XOR true RETURN n",
    "MATCH (n) WHERE 1 < n.num < 3 RETURN n.num",
    "MATCH (n) WHERE 10 < n.num <= 3 RETURN n.num",
    "MATCH (n) WHERE n.name STARTS WITH 'ABC' RETURN n",
    "MATCH (n) WHERE n.name ENDS WITH '' RETURN n",
    "MATCH (n) WHERE n.name CONTAINS null RETURN n",
    "MATCH (n) WHERE NOT n.name STARTS WITH 'a' AND n.name =~ 'b.*' RETURN n",
    "MATCH (n) WHERE (n)-[]->() RETURN n",
    "MATCH (n) WHERE (n)-[:REL1*]-() RETURN n",
    "MATCH (n), (m) WHERE (n)-[:REL1]->(m) RETURN n, m",
    "MATCH (n) WHERE (n)-[:REL1]-() AND NOT (n)-[:REL3]-() RETURN n",
    "MATCH (n) WHERE (n)-[:REL1]-(:A {x: 1})-->() OR n.x = 1 RETURN n",
    "MATCH (a)-[r]->(b) WHERE type(r) = 'KNOWS' OR type(r) = 'HATES' RETURN r",
    "MATCH (a:A), (b) WHERE a:A AND b:B:C RETURN a, b",
    "MATCH (n) WHERE (n:A) RETURN n",
    "MATCH (n) WHERE exists((n)-->()) RETURN n",
    "MATCH (n) WHERE exists { (n)-->() } RETURN n",
    "MATCH (n) WHERE exists { MATCH (n)-->(m) WITH n, count(*) AS numConnections WHERE numConnections = 3 RETURN true }"
    " RETURN n",
    "MATCH (n) WHERE exists { MATCH (m) WHERE exists { (n)-[]->(m) WHERE n.prop = m.prop } RETURN true } RETURN n",
    # WITH.
    "MATCH (a:A) WITH a MATCH (a)-->(b) RETURN b",
    "WITH 1 AS a, 'b' AS b RETURN a, b",
    "MATCH (a) WITH a.name AS name, count(*) AS n WHERE n > 1 RETURN name",
    "MATCH (a) WITH a, a.num + a.num2 AS sum WITH a, sum % 3 AS mod ORDER BY mod, sum LIMIT 3 RETURN a, sum, mod",
    "MATCH (a) WITH DISTINCT a.name AS name ORDER BY name DESC RETURN *",
    "WITH [1, 2, 3] AS list WITH list[0] AS first, list[-1] AS last RETURN first, last",
    "MATCH (a) WITH a ORDER BY a.count SKIP toInteger(rand()) LIMIT 3 + 1 RETURN a",
    "WITH {first: {second: {third: 3}}} AS m RETURN m.first.second.third",
    "MATCH ()-[r1]->() WITH r1 LIMIT 1 MATCH ()-[r1]->() RETURN r1",
    "MATCH (a) WITH a WHERE a.name = 'B' OR a.name2 = 'C' RETURN *",
    # RETURN, ORDER BY, SKIP, LIMIT.
    "RETURN 1",
    "RETURN 1 AS one, 2 AS two",
    "MATCH (n) RETURN DISTINCT n.name",
    "MATCH (n) RETURN n.num AS n ORDER BY n + 2",
    "MATCH (a) RETURN a, count(*) ORDER BY count(*)",
    "MATCH (n) RETURN n.name ORDER BY n.name ASCENDING, n.age DESCENDING",
    "MATCH (n) RETURN n ORDER BY n.name SKIP $s LIMIT $l",
    "MATCH (p:Person) RETURN p.name AS name ORDER BY p.name SKIP 2",
    "MATCH (n) RETURN n LIMIT 0",
    "MATCH (n) RETURN count(n) > 0 AS any, {a: n.x, b: [n.y]} AS m",
    "MATCH (n) RETURN [n, 1, {n: n}] AS x",
    "MATCH (a) RETURN a.age, a.age + count(*)",
    "MATCH (person) RETURN avg(person.age) AS avgAge ORDER BY $age + avg(person.age) - 1000",
    # UNWIND and UNION.
    "UNWIND [1, 2, 3] AS x RETURN x",
    "WITH [[1, 2], [3]] AS lol UNWIND lol AS x UNWIND x AS y RETURN y",
    "UNWIND null AS nil RETURN nil",
    "UNWIND [] AS empty RETURN empty",
    "WITH $events AS e UNWIND e.list AS x MATCH (y {year: x.year}) RETURN y",
    "RETURN 1 AS x UNION RETURN 2 AS x",
    "UNWIND [2, 1, 2, 3] AS x RETURN x UNION ALL UNWIND [3, 4] AS x RETURN x",
    "MATCH (a:A) RETURN a AS a UNION MATCH (b:B) RETURN b AS a",
    # Aggregation.
    "MATCH (n) RETURN count(*), count(n), count(DISTINCT n.x)",
    "MATCH (n) RETURN min(n.x), max(n.x), sum(n.x), avg(n.x), collect(n.x), collect(DISTINCT n)",
    "MATCH (n) RETURN percentileCont(n.price, $p), percentileDisc(n.price, 0.5), stDev(n.x), stDevP(n.x)",
    "UNWIND ['a', 'b', null] AS i RETURN max(i), min([i])",
    "MATCH (n) RETURN size(collect(n)), count(DISTINCT {name: n.name})",
    # Literals.
    "RETURN true, FALSE, null, NULL",
    "RETURN 0, -0, 372036854, -9223372036854775808",
    "RETURN 0x0, 0x1A2B3C4D5E6F7, -0x162CD4F6, 0xAbC",
    "RETURN 0o0, 0o7, -0o2613152366, 0o1",
    "RETURN 1.0, .1, -.1, 1e9, 1E-9, .1e9, -1.5e+3",
    "RETURN '', 'a', \"b\", 'it\\'s', \"\\\"\", '\\n\\t\\\\', '\\u0041'",
    "RETURN [], [1], [[[]]], [null, 'a', 1.5, [true]], [ ]",
    "RETURN {}, {a: 1}, {a: {b: {c: []}}}, {`a b`: 1, A: 2, a1B2: 3}",
    "RETURN [{a: [{b: -1}]}, {c: 'x'}]",
    # Operators and precedence.
    "RETURN 12 / 4 * 3 - 2 * 4, 2 ^ 3 ^ 2, 7 % 4, -3 ^ 2, 5 - -5",
    "RETURN true OR true XOR false AND NOT false",
    "RETURN NOT NOT true, NOT(true), NOT true = false",
    "RETURN (1 + 2) * (3 - (4 + 5)) / 2.0",
    "RETURN 'a' + 'b' + 1, [1] + 2 + [3], 'x' || 'y'",
    "RETURN 1 IN [1, 2] AND [1] IN [[1]], NOT 1 IN [2], null IN []",
    "RETURN [1, 2, 3][0], [1, 2, 3][-1], [1, 2, 3][1..], [1, 2, 3][..2], [1, 2, 3][0..-1], [1][$i], [[1]][0][0]",
    "WITH [1, 2, 3, 4, 5] AS list RETURN list[1..3], list[$from..$to], size(list[1..])",
    "RETURN {a: 1}['a'], {a: 1}.a, {a: {b: 2}}.a.b, [{a: 1}][0].a, $m.a, $m['a']",
    "RETURN 1 = 1.0, 'a' <> 'b', [1] = [1], {a: 1} = {a: 1}, null = null, 1 < 'a'",
    "RETURN null IS NULL, 1 IS NOT NULL, (null IS NULL) = true",
    "RETURN 3 < 4 AND 4 >= 4, 1 <= 2 < 3 <> 4",
    "MATCH (a) RETURN a.name IS NULL AS x, NOT a.flag AS y, a.x + a.y * 2 AS z",
    "RETURN 'abc' STARTS WITH 'a' AND 'abc' ENDS WITH 'c' OR 'abc' CONTAINS 'b'",
    # CASE.
    "RETURN CASE WHEN 1 > 2 THEN 'a' WHEN 2 > 1 THEN 'b' END",
    "RETURN CASE -1 WHEN 1 THEN 'a' WHEN -1 THEN 'b' ELSE 'c' END",
    "MATCH (n) RETURN CASE n.eyes WHEN 'blue' THEN 1 WHEN 'brown' THEN 2 ELSE 3 END AS result",
    "RETURN CASE WHEN true THEN CASE 1 WHEN 1 THEN 'x' END ELSE null END AS nested",
    "MATCH (n) RETURN n.x ORDER BY CASE WHEN n.x IS NULL THEN 0 ELSE 1 END DESC",
    "MATCH (n) RETURN CASE n.age WHEN IS NULL, IS NOT TYPED INTEGER THEN 0 WHEN < 0, > 120 THEN 1 ELSE 2 END AS x",
    # List comprehensions, quantifiers, reduce.
    "RETURN [x IN range(0, 5) WHERE x % 2 = 0 | x ^ 2]",
    "RETURN [x IN [1, 2, 3] | x + 1], [x IN [1, 2] WHERE x > 1], [x IN [1, 2]]",
    "MATCH p = (n)-->() RETURN [x IN collect(p) | head(nodes(x))] AS p",
    "MATCH (n) RETURN [x IN [n] WHERE x:A|B | x.name] AS names",
    "MATCH (n) RETURN [x IN [n] WHERE x:A|B] AS ns",
    "RETURN all(x IN [1, 2] WHERE x > 0), any(x IN [] WHERE true), none(x IN [1] WHERE x = 2)",
    "WITH [1, 2] AS xs RETURN single(x IN xs WHERE x = 1) AND NOT single(x IN xs WHERE true)",
    "RETURN any(x IN [[1]] WHERE all(y IN x WHERE none(z IN [y] WHERE z > 1)))",
    "MATCH p = (a)-[*1..3]->(b) WHERE none(n IN nodes(p) WHERE n.x = 1) AND any(r IN rels(p) WHERE r.x) RETURN p",
    "RETURN reduce(acc = 0, x IN [1, 2, 3] | acc + x), reduce(s = '', w IN ['a', 'b'] | s + w)",
    "WITH [1, null] AS xs RETURN single(x IN xs WHERE x IS NULL) = NOT all(x IN xs WHERE NOT x IS NULL)",
    # Pattern comprehensions, map projections.
    "MATCH (n) RETURN [p = (n)-->() | p] AS list",
    "MATCH (n:A) RETURN [p = (n)-[:HAS]->(:B) | p] AS list",
    "MATCH (n) RETURN [(n)-[:T]->(b) | b.name] AS list",
    "MATCH (n) RETURN [(n)-[r:T*1..2]-(b:B|C) WHERE b.x = 1 | {b: b, r: r}] AS list",
    "MATCH (n) RETURN size([(n)--() | 1]) AS degree",
    "MATCH (n) RETURN n {.name, .age, x: n.y + 1, .*} AS m",
    "MATCH (n)-->(m) RETURN n {.name, friends: collect(m {.name})} AS person",
    "WITH {a: 1} AS map, 2 AS b RETURN map {.a, b, c: 3} AS x",
    # Functions.
    "MATCH (n)-[r]->() RETURN id(n), elementId(r), labels(n), type(r), keys(n), startNode(r), endNode(r)",
    "RETURN head([1]), last([1]), tail([1, 2]), size('abc'), reverse([1, 2]), range(0, 10, 2), range(3, 1, -1)",
    "RETURN toString(1), toInteger('1'), toFloat('1.5'), toBoolean('true'), coalesce(null, 1)",
    "RETURN abs(-1), ceil(1.2), floor(1.7), round(1.5), sign(-3), sqrt(4), exp(1), log(2), log10(10), rand(), pi()",
    "RETURN sin(1), cos(1), tan(1), cot(1), asin(1), acos(1), atan(1), atan2(1, 2), degrees(1), radians(180)",
    "RETURN toLower('A'), toUpper('a'), trim(' a '), ltrim(' a'), rtrim('a '), substring('abc', 1, 1)",
    "RETURN left('ab', 1), right('ab', 1), properties({a: 1}).a, e()",
    "RETURN split('a,b', ','), replace('a', 'b', 'c'), isEmpty(''), nullIf(1, 2), valueType(1), char_length('a')",
    "MATCH p = shortestPath((a:A)-[:T*1..5]->(b:B)) RETURN p",
    "MATCH (a), (b) RETURN length(shortestPath((a)-[*]-(b))) AS d",
    "MATCH (a), (b) WHERE a <> b MATCH p = allShortestPaths((a)-[*..15]-(b)) RETURN p",
    "RETURN properties({a: 1}), keys({a: 1, b: 2}), exists({a: 1}.a)",
    # Temporal values.
    "RETURN date('2015-07-21'), date({year: 1984, month: 10, day: 11}), date({year: 1984, week: 10, dayOfWeek: 3})",
    "RETURN time('21:40:32.142+01:00'), time({hour: 12, minute: 31, timezone: '+01:00'}), localtime('214032')",
    "RETURN datetime('2015-07-21T21:40:32.142[Europe/London]'), localdatetime({year: 1984, ordinalDay: 202})",
    "RETURN duration('P5M1.5D'), duration({days: 14, hours: 16}), duration.between(date('1984-10-11'), date())",
    "RETURN duration.inMonths(date('1984-10-11'), date()), duration.inSeconds(time(), time())",
    "RETURN date.truncate('decade', datetime({year: 1984}), {day: 2}), datetime.truncate('year', date())",
    "RETURN localtime.truncate('hour', localtime()), localdatetime.truncate('week', date())",
    "WITH date({year: 1984, month: 10, day: 11}) AS d RETURN d.year, d.quarter, d.weekYear, d.dayOfWeek, d.ordinalDay",
    "WITH datetime() AS d RETURN d.epochSeconds, d.timezone, d.offset, d.nanosecond, date(d) = date({date: d})",
    "WITH duration({years: 1, months: 4}) AS dur RETURN dur.years, dur.monthsOfYear, dur * 2, date() - dur",
    "RETURN datetime.fromepoch(416779, 999999999), datetime.fromepochmillis(23782), time.statement('Z')",
    "UNWIND [date('1910-05-06'), date('1980-12-24')] AS d RETURN d ORDER BY d DESC",
    "WITH date('1980-12-11') AS x, date('1984-10-11') AS d RETURN x > d, x <= d, x = d, toString(d)",
    # Procedures.
    "CALL db.labels() YIELD label WITH label ORDER BY label RETURN collect(label)",
    "MATCH (n) CALL db.propertyKeys() YIELD propertyKey AS k WITH n, k WHERE k = 'name' RETURN n[k]",
    # Paths and types beyond openCypher 9.
    "MATCH p = ((a)-[:R]->(b)){1,3} RETURN p",
    "MATCH (a:A) (()-[:R]->()){2} (b:B) RETURN a, b",
    "MATCH (a:A) ((x)-[r:R]->(y) WHERE r.w > 1)+ (b:B) RETURN [n IN x | n.name], y",
    "MATCH (a)-[:R]->+(b)<-[:S]-*(c) RETURN a, c",
    "MATCH (a)-[:R]-{,4}(b)-[:S]->{2,}(c) RETURN a, c",
    "MATCH p = ALL SHORTEST (a:A)-[:R]->+(b:B) RETURN p",
    "MATCH p = SHORTEST 2 GROUPS (a)-->*(b) RETURN p",
    "MATCH ANY 3 (a)-[:R]->+(b) RETURN a, b",
    "MATCH REPEATABLE ELEMENTS (a)-[:R]->{1,2}(b) RETURN b",
    "MATCH (n:A&!B|C) RETURN n",
    "MATCH (n IS A) WHERE n IS B RETURN n",
    "MATCH ()-[r:!R&!S]->() RETURN r",
    "MATCH (n:%) WHERE n:(A|B)&!C RETURN n",
    "MATCH (n) WHERE n.x IS TYPED LIST<INTEGER NOT NULL> OR n.x IS NOT :: STRING | BOOLEAN RETURN n",
    "MATCH (n) WHERE n.x IS NORMALIZED OR n.x IS NOT NFKD NORMALIZED RETURN normalize(n.x, NFC)",
    "MATCH (n) RETURN n.a, n.b ORDER BY n.a DESC NULLS LAST",
    "MATCH (n) CALL (n) { MATCH (n)-->(m) RETURN m.x AS xs UNION MATCH (n)<--(m) RETURN m.y AS xs } RETURN n, xs",
    "MATCH (n) RETURN COLLECT { MATCH (n)-->(m) RETURN m.name ORDER BY m.name LIMIT 3 } AS top",
    "MATCH (n) WHERE COUNT { (n)-->(m) WHERE m.x = n.x } = 2 RETURN n, COUNT { MATCH (n)-->() RETURN DISTINCT n } AS c",
    # MATCH, continued: scopes, bound variables, self-loops, undirected and variable-length steps.
    "MATCH (a)-[r {name: 'r1'}]-(b) RETURN r",
    "MATCH (n {name: 'bar', id: 2}) RETURN n",
    "MATCH (a:A)-[r:T1]->(b), (b)<-[:T2]-(c) RETURN *",
    "MATCH (a)-[:A]->(), (b)-[:B]->(a) WHERE a <> b RETURN a.name AS x, b AS y",
    "MATCH (a)--(b)--(c) WHERE a.name = 'x' RETURN count(DISTINCT c)",
    "MATCH (a)-->(a)-->(b) RETURN b",
    "MATCH (x:X), (y:Y), (z:Z) MATCH (x)-[:R]->(y)-[:R]->(z)-[:R]->(x) RETURN x, y, z",
    "MATCH (a)-[r1:T]->(b)-[r2:T]->(c) WHERE r1 <> r2 RETURN r1, r2",
    "MATCH (a)-[r1]->() WITH r1, a LIMIT 1 MATCH (a)-[r1]->(b) RETURN a, r1, b",
    "MATCH ()-[r1]->() WITH r1 LIMIT 1 OPTIONAL MATCH ()<-[r1]-(x) RETURN r1, x",
    "MATCH (a1)-[r]->() WITH r, a1 LIMIT 1 MATCH (a1)<-[r]-(b2) RETURN a1, r, b2",
    "MATCH (a1)-[r]->() WITH r, a1 LIMIT 1 MATCH (a1:X)-[r]->(b2) RETURN a1, r, b2",
    "MATCH (a)-[:T*1..1]->(b) RETURN b",
    "MATCH (a:A) MATCH (a)-[:LIKES*2..1]->(c) RETURN c.name",
    "MATCH (a:A) MATCH (a)-[:LIKES]->()-[:LIKES*3]->(c) RETURN c.name",
    "MATCH (a:A) MATCH (a)<-[:LIKES*2..3]-()-[:LIKES]->(c) RETURN c.name",
    "MATCH (a:A) MATCH (a)-[:LIKES*0]->(c)-[:LIKES*0..]->(d) RETURN d.name",
    "MATCH (a)-[r:LIKES* {year: 1988}]->(b) RETURN r",
    "MATCH (a)-[rs:T*..2]-(b) WITH rs, a, b MATCH (a)-[rs*]->(b) RETURN a, b",
    "MATCH p = (a)-[:T*]-(b:B)-->(c) RETURN [n IN nodes(p) | n.name] AS names",
    "MATCH topRoute = (:S)<-[:C*1..]-()-[:C*1..]->(:S) RETURN topRoute",
    "MATCH p = (n)-->(n), q = (n) RETURN p, q",
    "MATCH p = (a)<--()--(b)-->() RETURN length(p) AS l, nodes(p)[0] AS first, relationships(p)[-1] AS last",
    "MATCH (:A)-[:R]->(:B)<-[:R]-(:C:D {x: $x}) RETURN 1 AS found",
    # OPTIONAL MATCH, continued.
    "MATCH (a:A), (c:C) OPTIONAL MATCH (a)-->(b)-->(c) RETURN b",
    (
        "MATCH (n:S) OPTIONAL MATCH (n)-->(m:NonExistent) WITH n, collect(CASE WHEN m IS NULL THEN 0 ELSE 1 "
        "END) AS c RETURN c"
    ),
    "MATCH (a:A), (b:C) OPTIONAL MATCH (x)-->(b) RETURN x",
    (
        "OPTIONAL MATCH (f:DoesExist) OPTIONAL MATCH (n:DoesNotExist) RETURN collect(DISTINCT n.num) AS a, "
        "collect(DISTINCT f.num) AS b"
    ),
    "MATCH (x:X) OPTIONAL MATCH (x)-[:E1]->(y:Y) OPTIONAL MATCH (y)-[:E2]->(z:Z) WHERE z.x < x.x RETURN x, y, z",
    "OPTIONAL MATCH ()-[r*1..2]->() WITH r WHERE r IS NULL OPTIONAL MATCH p = ()-[r*]->() RETURN p",
    "MATCH (a:Single), (x:A) OPTIONAL MATCH p = (a)-[:R*3..3]->(x) RETURN p",
    "MATCH (a)-->(b) OPTIONAL MATCH (b)-->(c) WHERE NOT (a)-->(c) RETURN a, b, c",
    # WHERE, continued.
    "MATCH (a) WHERE NOT(a.name = 'apa' AND false) RETURN a",
    "MATCH (n) WHERE n.p1 = 12 AND n.p2 = 13 OR n.p3 = 17 RETURN n",
    "MATCH (a), (b) WHERE a.animal = b.animal AND a:A AND (b:B OR b:C) RETURN a, b",
    "MATCH (n:Label)-->(x) WHERE ALL(y IN [1, 2] WHERE y = x.val) RETURN x",
    "MATCH p = (n)-[*]->(m) WHERE length(p) = 10 OR n.x IN range(1, 5) RETURN p",
    "MATCH (n) WHERE n.x =~ '.*' AND n.y <= null XOR NOT n:A RETURN n",
    "MATCH (a)-[:ADMIN]-(b) WHERE a:A AND id(a) <> id(b) RETURN a.id, b.id",
    "MATCH (r:Root)-->(i:Child) WHERE NOT i.var IS NOT NULL OR i.var > 'te' RETURN i",
    "MATCH ()-[rel:X]-(a) WHERE a.name = 'Andres' RETURN rel, type(rel) = 'X' AS x",
    "MATCH (n) WHERE n:A:B OR n:C AND n.prop RETURN n",
    # WITH, RETURN and ordering, continued.
    "MATCH (a)-[:T]->(b) WITH a AS b, b AS tmp, a.x AS r RETURN b AS a, tmp, r",
    "MATCH (n) WITH n.name AS n RETURN n",
    "WITH {name: {name2: 'baz'}} AS nestedMap RETURN nestedMap.name.name2",
    "WITH $param AS p WITH p.name AS name, p['age'] AS age RETURN *",
    (
        "MATCH (a) WITH a.bool AS bool, a.bool2 AS bool2 ORDER BY NOT (bool AND bool2), bool2 DESC LIMIT 3 "
        "RETURN bool, bool2"
    ),
    "MATCH (a) WITH a ORDER BY a.num + a.num2 DESCENDING, a.x ASC SKIP 1 LIMIT 3 RETURN a",
    "WITH [[2, 2], [null, 3], ['x']] AS lists UNWIND lists AS l WITH l ORDER BY l LIMIT 4 RETURN l",
    (
        "UNWIND [true, null, 3.14, 'x', {}, [], date('1984-10-11'), duration('P1D')] AS v WITH v ORDER BY v "
        "DESC RETURN v"
    ),
    "MATCH (a:A) WITH a, 1 AS x ORDER BY CASE WHEN a.x > 2 THEN a.y ELSE -a.y END, x RETURN a",
    "MATCH (n) WITH n.a AS a, count(*) AS c ORDER BY c DESC, a WHERE c > 1 AND a IS NOT NULL RETURN a, c",
    "MATCH (n:A) WITH count(*) AS n, avg(n.age) + $age AS x ORDER BY $age + x - 1000 RETURN n, x",
    "MATCH (me)--(you) WITH count(you.age) AS agg, me.age + you.age AS sum RETURN sum, agg",
    "MATCH (n) RETURN DISTINCT n.a AS a, n.b ORDER BY a DESC, n.b SKIP 1",
    "MATCH (n) RETURN n.division, max(n.age) ORDER BY max(n.age) DESC, n.division ASC",
    "MATCH (n) RETURN DISTINCT labels(n)[0] AS label, size(keys(n)) + 1 AS keys ORDER BY label",
    "MATCH (c) RETURN c.kind, count(*) ORDER BY count(*), c.kind LIMIT 0",
    "MATCH (n) RETURN n ORDER BY n.name ASC, n.date DESC SKIP $skipAmount LIMIT toInteger(ceil(1.7))",
    "UNWIND [1, 3, 2] AS ints RETURN ints ORDER BY ints DESC LIMIT 2",
    "MATCH p = (a)-[*]->(b) RETURN collect(nodes(p)) AS paths, length(p) AS l ORDER BY length(p)",
    "MATCH (a) RETURN exists(a.id), a IS NOT NULL, a:A, [a.x, $p], {x: a}",
    "MATCH (n) RETURN 1 AS n UNION ALL MATCH (m) WITH m ORDER BY m.x SKIP 1 RETURN 2 AS n",
    # UNWIND and subqueries, continued.
    "UNWIND range(1, 2) AS row WITH collect(row) AS rows UNWIND rows AS x RETURN x",
    "WITH [1, 2, 3] AS first, [4, 5, 6] AS second UNWIND first + second AS x RETURN x",
    "MATCH (a:S)-[:X]->(b1) WITH a, collect(b1) AS bees UNWIND bees AS b2 MATCH (a)-[:Y]->(b2) RETURN a, b2",
    "MATCH (row) WITH collect(row) AS rows UNWIND rows AS node RETURN node.id",
    "WITH [1, 2] AS xs, [3, 4] AS ys, [5, 6] AS zs UNWIND xs AS x UNWIND ys AS y UNWIND zs AS z RETURN *",
    "UNWIND $props AS p MATCH (n:A {id: p.id})-[:R {since: p['since']}]->(m) RETURN m",
    "MATCH (n) WHERE exists { (n)-->(:B) } AND NOT exists { (n)<--({x: n.x}) } RETURN n",
    (
        "MATCH (n) WHERE exists { MATCH (n)-->(m) WHERE n.prop = m.prop AND exists { MATCH (m)--() RETURN "
        "true } RETURN true } RETURN n"
    ),
    # Aggregation, continued.
    "MATCH (n) RETURN n.x, count(*) AS c, sum(n.y) / count(n.y) AS mean",
    "UNWIND range(1000000, 1000009) AS i WITH max(i) AS m, min(i) AS n RETURN m - n",
    "UNWIND [[1], [2, 1], 'a', null, 1, true] AS i RETURN max(i), min(i)",
    "UNWIND [0.0, 0.1, 0.9] AS p RETURN percentileDisc(p, $percentile), percentileCont(p, 1.0)",
    "MATCH (a) OPTIONAL MATCH (a)-[:R]->(b) RETURN a.name, count(DISTINCT b) + count(b) * 2 AS c",
    "MATCH (a:L)-[rel]->(b) RETURN a, count(*), collect(DISTINCT type(rel))[0..2]",
    "MATCH ()-[f:KNOWS]->() WITH max(f.x) AS mx, min(f.x) AS mn RETURN mx, mn, mx - mn AS d",
    # Lists, maps, strings and null.
    "WITH [1, 2, 3, 4, 5] AS list, 2 AS idx RETURN list[idx], list[toInteger(idx)], list[-idx..], list[..-1]",
    "WITH $expr AS expr, $idx AS idx RETURN expr[idx], expr[toString(idx)]",
    "RETURN [1, 10, 100] + [4, 5], [0, 1] + 2, 'a' + ['b'], [] + [[]] AS foo",
    "RETURN [1, 2] = [1, null], [1, 2] <> 'foo', [[1], [2]] = [[1], [null]] AS res",
    "RETURN 3 IN [[1, 2, 3]][0], [1, 2] IN [1, [1, 2]], [1] + [2] IN [3, 4] + 5, null IN [[null]] AS res",
    "WITH [1, 'a', [2, null]] AS l RETURN [x IN l WHERE x IN [1, [2, null]] | [y IN [x] | y]] AS res",
    "RETURN range(0, -1), range(10, 0, -3), range(-5, 5)[2..4], last(range(1, 3)), tail([]) AS res",
    "RETURN {a: 1, A: 2, `a`: {b: null}}.a.b AS x, {}.x IS NULL AS y, {k: {}}['k'].z AS z",
    "WITH {existing: 42, notMissing: null} AS m RETURN exists(m.missing), m.existing + 1, keys(m), m[null] AS x",
    ("RETURN keys({k: 1, l: null}), 'k' IN keys({k: 1}), {k: 21} = {k: 21.0}, {a: 1, b: null} = {b: null, a: 1} AS x"),
    ("RETURN substring('0123', 1), substring('0123456789', 1 + 1, 2), reverse('raksO'), split('one1two', '1')[1] AS x"),
    (
        "RETURN toUpper(null), toLower(n.x), trim(toString(1)), size(split('a b', ' ')), left('x', 0) + "
        "right('y', 1) AS x"
    ),
    (
        "WITH null AS x RETURN x IS NULL AND NOT x IS NOT NULL, x = null, x <> x, x + 1, x.y, x[0], "
        "coalesce(x, 'a') AS y"
    ),
    "MATCH (n) RETURN n.missing IS NULL, n.missing IS NOT NULL, coalesce(n.missing, n.other, 1) + 1 AS x",
    (
        "MATCH (n) RETURN properties(n), properties($map), keys(n)[0], type(null), labels(null), [k IN "
        "keys(n) | n[k]] AS x"
    ),
    # Booleans, comparison, precedence and arithmetic.
    "RETURN true AND null OR false, null XOR true, NOT null, NOT NOT false, true = NOT false AS x",
    ("UNWIND [true, false, null] AS a UNWIND [true, false, null] AS b WITH a, b WHERE (a OR b) = (b OR a) RETURN a, b"),
    "RETURN true OR true XOR true AND false, (true OR true) XOR (NOT true AND false) AS x",
    "RETURN NOT false = true, NOT (false = true), (NOT false) = true, NOT 1 < 2 AND 3 > 2 AS x",
    "RETURN 1 < 2 < 3, 1 < 2 = true, 1 <= 1.0 >= 0, 'a' < 1, [1, 2] >= [1], [1, null] < [2] AS x",
    "MATCH (n) WHERE 'a' <= n.name < 'c' AND n.num >= 1 RETURN n.name < 'b' <> false AS x",
    "RETURN 1.0 / 0.0 <> 0.0 / 0.0, 0.0 / 0.0 > 1, sqrt(-1) = sqrt(-1) AS x",
    "RETURN 4 * 2 + 3 * 2, 4 * 2 + (3 * 2), 4 / (2 + 3) * 2 % 3, 2 ^ 3 * 2, -2 ^ 2, (-2) ^ 2, 4 - -(2) AS x",
    "RETURN [1] = 2 IN [3, false], ([1] = [2]) IN [false], [1, 2] + 3 IN [[1, 2, 3]], 5 IN [4] OR true AS x",
    "RETURN null IS NULL = true, (null IS NOT NULL) OR true, 'ab' STARTS WITH 'a' IS NOT NULL AS x",
    "RETURN 'a' + 'b' STARTS WITH 'ab', [1, 2][0] + 3 = 4, {a: [5]}.a[0] ^ 2, -[3][0] AS x",
    "RETURN 12 % 5 / 2 * 3, 1 + 2 - 3 + 4, 2 ^ 2 ^ 3, 3 - 2 - 1, 8 / 4 / 2, + 1 - + 2 AS x",
    # Quantifiers, comprehensions and reduce.
    (
        "RETURN none(x IN [] WHERE true), single(x IN [[]] WHERE size(x) = 0), all(x IN [1] WHERE x = x), "
        "any(x IN [] WHERE x) AS r"
    ),
    "RETURN any(x IN ['abc', 'ef'] WHERE size(x) = 3) AND none(x IN [{a: 2}] WHERE x.a = 5) AS r",
    ("MATCH p = (:S)-[*0..3]->(x) WITH tail(nodes(p)) AS nodes RETURN nodes, any(x IN nodes WHERE x.name = 'a') AS r"),
    (
        "WITH [1, 2, 3, 4] AS inputList UNWIND inputList AS x UNWIND inputList AS y RETURN all(z IN [x, y] "
        "WHERE z > 2) = (x > 2 AND y > 2) AS r"
    ),
    (
        "WITH [1, null, true, 4.5, 'abc'] AS inputList RETURN none(x IN inputList WHERE single(y IN "
        "inputList WHERE x = y)) <= true AS r"
    ),
    "WITH [y IN [1, 2] WHERE rand() > 0.5 | y] AS list RETURN all(x IN list WHERE false) = (size(list) = 0) AS r",
    "MATCH (n) RETURN [x IN collect(n.name) WHERE x <> 'a' | {name: x, size: size(x)}] AS xs",
    "MATCH (n:X) WITH n, [x IN labels(n) | toLower(x)] AS ls RETURN size([x IN ls WHERE x = 'x']) AS c",
    ("MATCH p = (a:A)-[:T]->(b:B) RETURN [x IN nodes(p) WHERE x:A | x.name] + [r IN relationships(p) | type(r)] AS xs"),
    "MATCH (a:A), (b:B) WITH [p = (a)-[*]->(b) | p] AS paths, count(a) AS c RETURN paths, c",
    "MATCH (liker) RETURN [p = (liker)--() | p] AS isNew ORDER BY liker.time",
    "MATCH (a) RETURN [x IN [(a)--(b) | b.age] WHERE x IS NOT NULL | x] AS ages, count([(a)-->() | 1]) AS c",
    # Patterns as expressions.
    "MATCH (n) WHERE (n)--() RETURN n",
    "MATCH (n) WHERE (n)-[:REL1|REL2]-() AND (n)<-[:REL3]-() RETURN n",
    "MATCH (n) WHERE (n)-[:REL1*2]-() XOR (n)-[:REL2*1..]->() RETURN n",
    "MATCH (n), (m) WHERE (n)-[:REL1]->({p: m.x}) OR (n)<-[:REL2 {y: 1}]-(m) RETURN n, m",
    "MATCH (n), (m) WHERE NOT (n)-[:A]->(m)<-[:B]-(n) RETURN n",
    "MATCH (a) RETURN (a)-->() AS out, NOT (a)<--() AS noIn, exists((a)--(:B)) AS near",
    # Temporal values, continued.
    ("RETURN date({year: 1816, week: 1}), date({year: 1817, quarter: 3, dayOfQuarter: 45}), date({year: 1984}) AS d"),
    (
        "RETURN localtime({hour: 12, minute: 31, second: 14, nanosecond: 645876123}), time({hour: 12, "
        "timezone: '+01:00'}) AS t"
    ),
    (
        "RETURN localdatetime({year: 1984, week: 10, dayOfWeek: 3, hour: 12, minute: 31, second: 14, "
        "millisecond: 645}) AS t"
    ),
    (
        "RETURN datetime({year: 1984, month: 10, day: 11, hour: 12, timezone: 'Europe/Stockholm', "
        "microsecond: 645876}) AS t"
    ),
    (
        "RETURN duration({days: 5, hours: 6, minutes: 7.5, seconds: -2, milliseconds: 123.4}), "
        "duration('P22W'), duration('PT0.75M') AS d"
    ),
    (
        "WITH date({year: 1984, month: 11, day: 11}) AS other RETURN date({date: other, year: 28}), "
        "date({date: other, week: 1}) AS d"
    ),
    (
        "WITH localtime({hour: 12}) AS l, date('1984-10-11') AS d RETURN datetime({date: d, time: l, "
        "timezone: '+05:00'}) AS t"
    ),
    (
        "WITH datetime('1984-10-11T12:00:00Z') AS t RETURN time(t), localdatetime({datetime: t, second: "
        "42}), date(t) AS d"
    ),
    "UNWIND ['2015-07-21', '20150721', '2015-07', '2015-W30', '2015W302', '2015202'] AS s RETURN date(s) AS d",
    "UNWIND ['21:40:32.142', '214032', '2140', '21'] AS s RETURN localtime(s) AS t",
    (
        "WITH duration({years: 12, months: 5}) AS dur RETURN dur.years, dur.quartersOfYear, "
        "dur.minutesOfHour, dur.nanosecondsOfSecond AS x"
    ),
    (
        "WITH time('12:31:14.645876123+01:00') AS t RETURN t.hour, t.offsetMinutes, t.offsetSeconds, "
        "t.millisecond, toString(t) AS x"
    ),
    (
        "WITH date('1984-10-11') AS x, duration({months: 1, days: -14}) AS d RETURN x + d, x - d, d + d, d - "
        "d, d * 2, d / 0.5 AS r"
    ),
    (
        "RETURN duration.between(date('1984-10-11'), localdatetime('2016-07-21T21:45')), "
        "duration.inSeconds(time('14:30'), time('16:30')) AS d"
    ),
    "RETURN datetime.truncate('millennium', date('2017-10-11'), {timezone: 'Europe/Stockholm', day: 2}) AS t",
    (
        "RETURN time.truncate('microsecond', localtime('12:31'), {nanosecond: 2}), localtime.truncate('day', "
        "time()) AS t"
    ),
    "UNWIND [date('2020-01-01'), null] AS d WITH d WHERE d > date('1999-12-31') OR d IS NULL RETURN d ORDER BY d",
    "WITH localtime('10:35') AS x, localtime('10:36') AS d RETURN x > d, x < d, x = d, x <> d, max(x) AS m",
    # Conversions, graph functions and literals.
    "UNWIND ['42', 42.9, null, 'foo'] AS x RETURN toInteger(x), toFloat(x), toString(x) AS s",
    "WITH [2, 2.9, '1.7'] AS numbers RETURN [n IN numbers | toInteger(n)] AS ints, toBoolean('tr' + 'ue') AS b",
    (
        "MATCH (m:Movie {rating: 4}) WITH * MATCH (n) RETURN toInteger(n.version), toFloat(m.rating), "
        "toString(m.watched) AS s"
    ),
    (
        "MATCH (a)-[r]->(b) RETURN startNode(r) = a, endNode(r).x, id(a) < id(b), type(r) + 'x', r.num, "
        "(r).num, [r][0].num AS x"
    ),
    ("MATCH (a) WITH a AS n, [a, 1] AS list RETURN labels(list[0]), labels(n), 'A' IN labels(n), (n:A:B) = true AS x"),
    (
        "RETURN 9223372036854775807, -9223372036854775808, 0x7FFFFFFFFFFFFFFF, -0x8000000000000000, "
        "0o777777777777777777777 AS x"
    ),
    "RETURN 1e9, .1e-5, -.1E+9, 1.34e308, 12345.678901234567890, -0.0, 1E-305 AS x",
    "RETURN ['', 'b', \"'\", '\"', '\\'', \"\\\"\", '\\u0061'], '🧐🍌❖⋙⚐' AS x",
    "RETURN [[[[[[[]]]]]], [[], [[]], [null, [true, [false]]]], [-1.5, 0x1, 'x', {k: []}]] AS x",
    "RETURN {a: {b: {c: {d: {e: {}}}}}, k1: 'v', K1: ['v'], k_1: null, `k 1`: $p, kÖ: 1.0} AS x",
    # Use cases.
    "MATCH (a:A)-[:KNOWS]->(b:X)-->(c:X) OPTIONAL MATCH (a)-[r:KNOWS]->(c) WITH c WHERE r IS NULL RETURN c.name",
    "MATCH (a:A)-[:KNOWS]->(b)-->(c) OPTIONAL MATCH (a)-[r:FOLLOWS]->(c) WITH c WHERE r IS NOT NULL RETURN c.name",
    "MATCH (:A)-->()-->() RETURN count(*)",
    "MATCH (a)-[:LOOP]->(a) RETURN count(*)",
    "MATCH ()-[:LOOP]-() RETURN count(*)",
    "MATCH ()-[r]-() RETURN count(r), count(DISTINCT r)",
    "MATCH (n)-->(n)-->(m)--(k) RETURN count(DISTINCT m) + count(k) AS c",
]
