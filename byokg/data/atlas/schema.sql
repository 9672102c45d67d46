-- The tables and views that every `gold_sql` of questions.jsonl is written against (SQLite).
-- `node` is nodes.csv and `edge` is edges.csv, row by row, with empty cells as NULL.

CREATE TABLE node (
  id TEXT PRIMARY KEY, name TEXT NOT NULL, type TEXT NOT NULL, iso2 TEXT, population INTEGER, area_km2 REAL,
  elevation_m INTEGER, length_km INTEGER, depth_m INTEGER, year INTEGER
);
CREATE TABLE edge (
  head TEXT NOT NULL, relation TEXT NOT NULL, tail TEXT NOT NULL, start INTEGER, "end" INTEGER, source TEXT
);
CREATE INDEX edge_head ON edge (relation, head);
CREATE INDEX edge_tail ON edge (relation, tail);

-- One view per relation, its columns named after what stands there.
CREATE VIEW capital (country, city) AS SELECT head, tail FROM edge WHERE relation = 'capital';
CREATE VIEW in_continent (country, continent) AS SELECT head, tail FROM edge WHERE relation = 'in_continent';
CREATE VIEW in_region (country, region) AS SELECT head, tail FROM edge WHERE relation = 'in_region';
CREATE VIEW currency (country, currency, since) AS SELECT head, tail, start FROM edge WHERE relation = 'currency';
CREATE VIEW language (country, language) AS SELECT head, tail FROM edge WHERE relation = 'official_language';
CREATE VIEW located (city, country) AS SELECT head, tail FROM edge WHERE relation = 'located_in';
CREATE VIEW river (river, country) AS SELECT head, tail FROM edge WHERE relation = 'flows_through';
CREATE VIEW mouth (river, water) AS SELECT head, tail FROM edge WHERE relation = 'flows_into';
CREATE VIEW tributary (river, main) AS SELECT head, tail FROM edge WHERE relation = 'tributary_of';
CREATE VIEW mountain (mountain, country) AS SELECT head, tail FROM edge WHERE relation = 'mountain_in';
CREATE VIEW lake (lake, country) AS SELECT head, tail FROM edge WHERE relation = 'lake_in';
CREATE VIEW won (person, award, year) AS SELECT head, tail, start FROM edge WHERE relation = 'won';
CREATE VIEW born (person, country) AS SELECT head, tail FROM edge WHERE relation = 'born_in';
CREATE VIEW led (person, country, since, until) AS
  SELECT head, tail, start, COALESCE("end", 9999) FROM edge WHERE relation = 'head_of_government_of';

-- A border is stored from both sides.
CREATE VIEW neighbour (a, b) AS SELECT head, tail FROM edge WHERE relation = 'borders';
